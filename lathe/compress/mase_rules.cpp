#include "lathe/compress/mase_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

constexpr std::array<std::pair<TensorRole, const char*>, 4> kPrefixes{
    {{TensorRole::Inputs, "data_in_"},
     {TensorRole::Weights, "weight_"},
     {TensorRole::Bias, "bias_"},
     {TensorRole::Outputs, "data_out_"}}};

// Every key that a configuration may have.
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
      fail("{}: not read: give queries, keys and values their format with --attention", text);
    if (text == "rope" || text == "softmax" || text == "clip_search" ||
        text.ends_with("_stochastic"))
      fail("{}: not supported", text);
    if (text == "gptq") fail("gptq: give --gptq instead");
  }
}

// The keys of one tensor, such as those that begin with "weight_".
class TensorKeys {
 public:
  TensorKeys(const toml::table& config, std::string prefix)
      : config_(config), prefix_(std::move(prefix)) {}

  bool is_given() const {
    for (const auto& [key, node] : config_)
      if (key.str().starts_with(prefix_) && key.str() != prefix_ + "skip_first_dim") return true;
    return false;
  }
  std::int64_t integer(const std::string& key) const {
    const std::optional<std::int64_t> value = config_[prefix_ + key].value<std::int64_t>();
    if (!value) fail("{}{} is missing: expected a whole number", prefix_, key);
    return *value;
  }
  // A bias that is absent, "none" or "None" is the usual one for so many exponent bits.
  std::int64_t bias(std::int64_t exponent_bits) const {
    const std::optional<std::int64_t> value =
        config_[prefix_ + "exponent_bias"].value<std::int64_t>();
    if (value) return *value;
    // What is no width is found when the format is read.
    return exponent_bits < 1 || exponent_bits > 32 ? 0
                                                   : (std::int64_t{1} << (exponent_bits - 1)) - 1;
  }
  // The last number of a block's shape: our blocks run along a row.
  std::int64_t block() const {
    const toml::array* shape = config_[prefix_ + "block_size"].as_array();
    if (shape == nullptr) return integer("block_size");
    const std::optional<std::int64_t> last =
        shape->empty() ? std::nullopt : shape->back().value<std::int64_t>();
    if (!last) fail("{}block_size must be a list of whole numbers", prefix_);
    return *last;
  }

 private:
  const toml::table& config_;
  std::string prefix_;
};

std::string format_text(const std::string& name, bool rounds_down, const TensorKeys& keys) {
  if (name == "integer" || name == "fixed")
    return fmt::format("{}:{},{}", rounds_down ? "mase.integer_floor" : "fixed",
                       keys.integer("width"), keys.integer("frac_width"));
  if (name == "minifloat_ieee" || name == "minifloat_denorm") {
    const std::int64_t exponent = keys.integer("exponent_width");
    return fmt::format("minifloat:{},{},bias={}", keys.integer("width"), exponent,
                       keys.bias(exponent));
  }
  if (name == "log") {
    const std::int64_t width = keys.integer("width");
    return fmt::format("log:{},bias={}", width, keys.bias(width - 1));
  }
  if (name == "block_fp")
    return fmt::format("bfp:{},block={}", keys.integer("width"), keys.block());
  if (name == "block_minifloat")
    return fmt::format("block_minifloat:{},{},block={}", keys.integer("width"),
                       keys.integer("exponent_width"), keys.block());
  if (name == "block_log")
    return fmt::format("block_log:{},block={}", keys.integer("width"), keys.block());
  if (name == "mxint" || name == "mxint_hardware")
    return fmt::format("mxint:{},block={}", keys.integer("width"), keys.block());
  if (name == "binary") return "binary";
  if (name == "binary_residual") return "binary:residual,2";
  if (name == "ternary") return "ternary";
  throw unknown_name(
      "name", name,
      {"integer", "fixed", "minifloat_ieee", "minifloat_denorm", "log", "block_fp",
       "block_minifloat", "block_log", "mxint", "binary", "binary_residual", "ternary"});
}

}  // namespace

RoleFormats mase_formats(const toml::table& config) {
  const std::optional<std::string> name = config["name"].value<std::string>();
  if (config["bypass"].value_or(false) || !name || *name == "NA" || *name == "none") return {};
  check_keys(config);
  const bool rounds_down = config["floor"].value_or(false);
  RoleFormats formats;
  for (const auto& [role, prefix] : kPrefixes) {
    const TensorKeys keys(config, prefix);
    if (keys.is_given()) formats[role] = format_text(*name, rounds_down, keys);
  }
  // Attention's second product; what it reads first are the weights.
  const toml::table* const product = config["av_matmul"].as_table();
  if (product != nullptr && !(*product)["bypass"].value_or(false)) {
    const TensorKeys keys(*product, "data_in_");
    with_place("av_matmul", [&] {
      check_keys(*product);
      if (keys.is_given())
        formats[TensorRole::AttentionWeights] =
            format_text((*product)["name"].value_or(*name), rounds_down, keys);
    });
  }
  if (formats.empty() && product == nullptr)
    fail("name = \"{}\" has neither data_in_*, weight_*, bias_* nor data_out_* keys", *name);
  return formats;
}

}  // namespace lathe::compress
