#include "lathe/compress/mase_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

constexpr std::array<std::pair<TensorRole, const char*>, 4> kPrefixes{
    {{TensorRole::Inputs, "data_in_"},
     {TensorRole::Weights, "weight_"},
     {TensorRole::Bias, "bias_"},
     {TensorRole::Outputs, "data_out_"}}};

// Every key that some configuration of MASE has.
std::vector<std::string> known_keys() {
  std::vector<std::string> keys = {"name", "bypass",  "floor",    "av_matmul", "qk_matmul",
                                   "rope", "softmax", "kv_cache", "gptq",      "clip_search"};
  for (const auto& [role, prefix] : kPrefixes)
    for (const char* member :
         {"width", "frac_width", "exponent_width", "exponent_bias", "exponent_bias_width",
          "block_size", "skip_first_dim", "scaling_factor", "mean", "median", "max", "stochastic",
          "bipolar", "levels", "parallelism"})
      keys.push_back(std::string(prefix) + member);
  return keys;
}

// What MASE writes where Python says None.
bool is_nothing(const toml::node& node) {
  const std::optional<std::string> text = node.value<std::string>();
  return text && (*text == "NA" || *text == "none" || *text == "None");
}

// MASE drops a key that it does not know and leaves the tensor as it was. Here it is an error, and
// so is one that asks for something that would not be done.
void check_keys(const toml::table& config) {
  static const std::vector<std::string> kKnown = known_keys();
  for (const auto& [key, node] : config) {
    const std::string_view text = key.str();
    if (std::find(kKnown.begin(), kKnown.end(), text) == kKnown.end()) {
      const std::string nearest = nearest_name(text, kKnown);
      throw UserError(fmt::format("unknown key \"{}\"", text),
                      nearest.empty() ? "" : fmt::format("did you mean \"{}\"?", nearest));
    }
    const toml::table* const inner = node.as_table();
    const bool is_asked_for =
        inner != nullptr ? !(*inner)["bypass"].value_or(false) : node.value_or(false);
    if (!is_asked_for) continue;
    if (text == "qk_matmul" || text == "kv_cache")
      fail("{}: not read: queries, keys and values get their format from a rule for attention",
           text);
    if (text == "rope" || text == "softmax" || text == "clip_search" ||
        text.ends_with("_stochastic"))
      fail("{}: not supported", text);
    if (text == "gptq") fail("gptq: not read: it is an option of quantizing, for all layers");
  }
}

// The keys of one tensor, such as those that begin with "weight_". Each that a format reads is
// taken, and what is left over in the end is refused.
class TensorKeys {
 public:
  TensorKeys(const toml::table& config, std::string prefix, std::string_view table)
      : config_(config), prefix_(std::move(prefix)), table_(table) {}

  bool is_given() const {
    for (const auto& [key, node] : config_)
      if (key.str().starts_with(prefix_)) return true;
    return false;
  }
  std::string full_name(std::string_view key) const { return fmt::format("{}{}", prefix_, key); }
  bool is_of_input() const { return prefix_ == "data_in_"; }

  bool has(const std::string& key) {
    taken_.insert(prefix_ + key);
    const toml::node* const node = config_.get(prefix_ + key);
    return node != nullptr && !is_nothing(*node);
  }
  std::int64_t integer(const std::string& key) {
    const std::optional<std::int64_t> value =
        has(key) ? config_[prefix_ + key].value_exact<std::int64_t>() : std::nullopt;
    if (!value) fail("{}{} is missing: expected a whole number", prefix_, key);
    return *value;
  }
  std::int64_t integer_or(const std::string& key, std::int64_t otherwise) {
    return has(key) ? integer(key) : otherwise;
  }
  bool flag_or(const std::string& key, bool otherwise) {
    if (!has(key)) return otherwise;
    const std::optional<bool> value = config_[prefix_ + key].value_exact<bool>();
    if (!value) fail("{}{}: expected true or false", prefix_, key);
    return *value;
  }
  // The bias that is usual for so many exponent bits, where none is given.
  std::int64_t bias(std::int64_t exponent_bits) {
    // What is no width is found when the format is read.
    const std::int64_t usual =
        exponent_bits < 1 || exponent_bits > 32 ? 0 : (std::int64_t{1} << (exponent_bits - 1)) - 1;
    return integer_or("exponent_bias", usual);
  }
  // Rows and columns of a block, the last two numbers of its shape; 1 row where it has one number.
  struct Tile {
    std::int64_t rows = 1, columns = 0;
    // "16" or "4x16".
    std::string text() const {
      return rows == 1 ? std::to_string(columns) : fmt::format("{}x{}", rows, columns);
    }
  };
  Tile tile(const std::string& key) {
    const toml::array* const shape = has(key) ? config_[prefix_ + key].as_array() : nullptr;
    if (shape == nullptr) return {1, integer(key)};
    std::vector<std::int64_t> sizes;
    for (const toml::node& node : *shape) {
      const std::optional<std::int64_t> size = node.value_exact<std::int64_t>();
      if (!size || *size < 1) fail("{}{}: expected a list of positive whole numbers", prefix_, key);
      sizes.push_back(*size);
    }
    if (sizes.empty()) fail("{}{}: expected a list of positive whole numbers", prefix_, key);
    for (std::size_t i = 0; i + 2 < sizes.size(); ++i)
      if (sizes[i] != 1) fail("{}{}: a block spans rows and columns, no more", prefix_, key);
    // Each sample alone, as rows always are; a weight has no samples.
    if (flag_or("skip_first_dim", is_of_input()) != is_of_input())
      fail("{}skip_first_dim in [{}]: must be {}", prefix_, table_, is_of_input());
    return {sizes.size() < 2 ? 1 : sizes[sizes.size() - 2], sizes.back()};
  }
  // Fails unless a key, where it is given, says what is so anyhow.
  void require(const std::string& key, std::int64_t expected, std::string_view why) {
    if (const std::int64_t given = integer_or(key, expected); given != expected)
      fail("{}{} = {} in [{}]: must be {}: {}", prefix_, key, given, table_, expected, why);
  }
  // Fails on a key that nobody took.
  void finish(const std::string& name) const {
    for (const auto& [key, node] : config_) {
      const std::string text(key.str());
      if (text.starts_with(prefix_) && !taken_.contains(text) && !text.ends_with("_stochastic") &&
          !is_nothing(node))
        fail("{} in [{}]: would do nothing: {} does not read it", text, table_, name);
    }
  }

 private:
  const toml::table& config_;
  std::string prefix_;
  std::string_view table_;
  std::set<std::string> taken_;
};

std::string block_fp(TensorKeys& keys) {
  const std::int64_t width = keys.integer("width");
  const std::int64_t exponent = keys.integer_or("exponent_width", 8);
  const std::int64_t bias = keys.bias(exponent);
  const TensorKeys::Tile tile = keys.tile("block_size");
  if (exponent == 8 && bias == 127) return fmt::format("bfp:{},block={}", width, tile.text());
  return fmt::format("mase.block_fp:{},{},bias={},block={}x{}", width, exponent, bias, tile.rows,
                     tile.columns);
}

// Ours keep the shared exponent in 8 bits.
std::string with_shared_bias(TensorKeys& keys, const std::string& family,
                             const std::string& numbers) {
  const std::int64_t bits = keys.integer_or("exponent_bias_width", 8);
  const TensorKeys::Tile tile = keys.tile("block_size");
  if (bits == 8) return fmt::format("{}:{},block={}", family, numbers, tile.text());
  return fmt::format("mase.{}:{},bias_width={},block={}x{}", family, numbers, bits, tile.rows,
                     tile.columns);
}

// The columns of a block that lies within a row.
std::int64_t one_row(TensorKeys& keys, const std::string& key) {
  const TensorKeys::Tile tile = keys.tile(key);
  if (tile.rows != 1)
    fail("{}: a block of MX lies within a row, but this one spans {}", keys.full_name(key),
         tile.rows);
  return tile.columns;
}

std::string ternary(TensorKeys& keys) {
  keys.require("width", 2, "three numbers take two bits");
  return keys.flag_or("scaling_factor", true) ? "ternary" : "mase.ternary";
}

std::string binary(TensorKeys& keys) {
  keys.require("width", 1, "a sign is one bit");
  return keys.flag_or("bipolar", true) ? "binary" : "mase.binary_scaled";
}

std::string binary_residual(TensorKeys& keys) {
  const std::int64_t levels = keys.integer_or("levels", 2);
  keys.require("width", levels, "a level is one bit");
  if (!keys.flag_or("bipolar", true))
    fail("{}: must be true: the levels are signs", keys.full_name("bipolar"));
  return fmt::format("binary:residual,{}", levels);
}

std::string format_text(const std::string& name, bool rounds_down, TensorKeys& keys) {
  if (name == "integer" || name == "fixed")
    return fmt::format("{}:{},{}", rounds_down ? "mase.integer_floor" : "fixed",
                       keys.integer("width"), keys.integer("frac_width"));
  if (rounds_down) fail("floor: would do nothing: {} rounds to the nearest", name);
  if (name == "minifloat_ieee" || name == "minifloat_denorm") {
    const std::int64_t width = keys.integer("width"), exponent = keys.integer("exponent_width");
    // Numbers without a leading one are another set; ours all have it.
    return fmt::format("{}:{},{},bias={}",
                       name == "minifloat_ieee" ? "minifloat" : "mase.minifloat_denorm", width,
                       exponent, keys.bias(exponent));
  }
  if (name == "log") {
    const std::int64_t width = keys.integer("width");
    return fmt::format("log:{},bias={}", width, keys.bias(width - 1));
  }
  if (name == "block_fp") return block_fp(keys);
  if (name == "block_minifloat")
    return with_shared_bias(
        keys, name, fmt::format("{},{}", keys.integer("width"), keys.integer("exponent_width")));
  if (name == "block_log")
    return with_shared_bias(keys, name, std::to_string(keys.integer("width")));
  if (name == "mxint")
    return fmt::format("mxint:{},block={}", keys.integer("width"), one_row(keys, "block_size"));
  if (name == "mxint_hardware") {
    keys.require("exponent_width", 8, "the scale of MX has 8 bits");
    return fmt::format("mxint:{},block={}", keys.integer("width"), one_row(keys, "parallelism"));
  }
  if (name == "mxfp")
    return fmt::format("mxfp:e{}m{},block={}", keys.integer("exponent_width"),
                       keys.integer("frac_width"), one_row(keys, "block_size"));
  if (name == "binary") return binary(keys);
  if (name == "binary_residual") return binary_residual(keys);
  if (name == "ternary") return ternary(keys);
  throw unknown_name("name", name,
                     {"integer", "fixed", "minifloat_ieee", "minifloat_denorm", "log", "block_fp",
                      "block_minifloat", "block_log", "mxint", "mxint_hardware", "mxfp", "binary",
                      "binary_residual", "ternary"});
}

}  // namespace

RoleFormats mase_formats(const toml::table& config, std::string_view table) {
  if (config["bypass"].value_or(false)) return {};
  const toml::node* const written = config.get("name");
  if (written == nullptr) fail("[{}]: name is missing: expected a quantizer's, or \"NA\"", table);
  if (is_nothing(*written)) return {};
  const std::optional<std::string> name = written->value<std::string>();
  if (!name) fail("[{}]: name must be a text", table);
  check_keys(config);
  if (config.contains("floor") && !config["floor"].is_boolean())
    fail("floor: expected true or false");
  const bool rounds_down = config["floor"].value_or(false);
  RoleFormats formats;
  for (const auto& [role, prefix] : kPrefixes) {
    TensorKeys keys(config, prefix, table);
    if (!keys.is_given()) continue;
    formats[role] = format_text(*name, rounds_down, keys);
    keys.finish(*name);
  }
  // Attention's second product; what it reads first are the weights.
  const toml::table* const product = config["av_matmul"].as_table();
  if (product != nullptr && !(*product)["bypass"].value_or(false)) {
    const std::string inner = fmt::format("{}.av_matmul", table);
    TensorKeys keys(*product, "data_in_", inner);
    with_place("av_matmul", [&] {
      check_keys(*product);
      for (const auto& [key, node] : *product)
        if (key != "name" && key != "bypass" && !key.str().starts_with("data_in_"))
          fail("{} in [{}]: would do nothing: only data_in_* is read there", key.str(), inner);
      if (!keys.is_given()) fail("has no data_in_* keys");
      const std::string own = (*product)["name"].value_or(*name);
      formats[TensorRole::AttentionWeights] = format_text(own, rounds_down, keys);
      keys.finish(own);
    });
  }
  if (formats.empty() && product == nullptr)
    fail("name = \"{}\" has neither data_in_*, weight_*, bias_* nor data_out_* keys", *name);
  return formats;
}

}  // namespace lathe::compress
