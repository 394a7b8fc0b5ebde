#include "lathe/hardware/lut_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"

namespace lathe::hardware {
namespace lut_models {
namespace {

using Parts = std::vector<double>;

// The module's parameters, by which its text counts, and its memories.
class Sizes {
 public:
  explicit Sizes(const BlockCall& call) : parameters_(call.block.module_parameters(call)) {}
  double operator[](std::string_view name) const {
    for (const auto& [parameter, value] : parameters_.integers)
      if (parameter == name) return static_cast<double>(value);
    check(false, "a parameter that the module has");
    return 0;
  }
  // Nothing where the memory is not there.
  const MemoryImage* memory(std::string_view name) const {
    for (const auto& [parameter, image] : parameters_.memories)
      if (parameter == name) return &image;
    return nullptr;
  }
  double read_only_luts(std::string_view name) const {
    const MemoryImage* image = memory(name);
    return image == nullptr ? 0 : hardware::read_only_luts(*image);
  }

 private:
  ModuleParameters parameters_;
};

// Of a number from 0 to `count` - 1.
double bits_of(double count) {
  return count <= 1 ? 0 : std::ceil(std::log2(count));
}

// A memory of LUTs: four of them hold 32 words of six bits, or 64 words of three. One of few words
// is of registers, of which a LUT chooses among four.
double written_luts(double width, double depth) {
  if (depth <= 1) return 0;
  if (depth <= 4) return width;
  if (depth <= 32) return 4 * std::ceil(width / 6);
  return 4 * std::ceil(width / 3) * std::ceil(depth / 64) + (depth > 64 ? width : 0);
}

// Of all lanes of a requant: the bits that rounding adds to, those that a result is chosen for
// where it may be saturated with those above that say so, and those below that say how to round.
Parts requant_parts(const Sizes& size, double lanes, double bits) {
  const double shift = size["SHIFT"], down = std::max(0.0, shift);
  const double kept = std::max(1.0, bits + size["MW"] - shift), result = size["OW"];
  const bool rounds = down > 0 && size["MODE"] != 1;
  const double above = kept + (rounds ? 1 : 0) - result;
  const bool saturates = above > 0 || size["OSIGNED"] == 0;
  return {lanes * (rounds ? kept : 0), lanes * (saturates ? result + std::max(1.0, above) / 3 : 0),
          lanes * (rounds && size["MODE"] == 0 ? down / 5 : 0)};
}

Parts with(Parts parts, const Parts& more) {
  parts.insert(parts.end(), more.begin(), more.end());
  return parts;
}

// Products of PI pairs, summed, in each of PO lanes. DSPs add what others made, but for the first
// two, where sums go round. In LUTs Yosys brings both factors to the width of the sum, and adds a
// row for each bit of one of them.
struct Products {
  bool is_dsp = false;
  double added = 0, single = 0, several = 0;
};
Products products_of(const Sizes& size, double w) {
  const double x = size["XW"] + (size["XSIGNED"] != 0 ? 0 : 1), sum = size["AW"];
  const double pairs = size["PI"], lanes = size["PO"], square = pairs * lanes * sum * sum / 4;
  const double adders = std::min(pairs - 1, 2.0);
  if (dsp_of_product(static_cast<int>(x), static_cast<int>(w), static_cast<int>(sum)) > 0)
    return {.is_dsp = true,
            .added = lanes * sum * (size["BEATS"] > 1 ? adders : std::max(0.0, adders - 1))};
  return {.single = pairs == 1 ? square : 0, .several = pairs > 1 ? square : 0};
}

// Of the lanes that both products are made of: requant, products, and the sums of their beats. A
// product with what is always the same is an adder or two.
Parts lane_parts(const Sizes& size, double weight_bits, bool has_bias, bool is_constant) {
  const double sums = size["PO"] * size["AW"];
  const bool goes_round = size["BEATS"] > 1;
  Products products = products_of(size, weight_bits);
  double constants = 0;
  if (is_constant && !products.is_dsp) {
    constants = size["PI"] * sums;
    products = {};
  }
  const auto sums_where = [&](bool is_so) { return is_so ? sums : 0; };
  return with(requant_parts(size, size["PO"], size["AW"]),
              {products.added, products.single, products.several, constants,
               sums_where(goes_round && !products.is_dsp),
               sums_where(goes_round && products.is_dsp && has_bias),
               sums_where(goes_round && products.is_dsp && !has_bias)});
}

Parts matrix_vector_parts(const BlockCall& call) {
  const Sizes size(call);
  const double words = size["BEATS"] * size["TILES"];
  const bool is_replayed = size["TILES"] > 1, has_bias = size["BIAS"] != 0;
  return with(lane_parts(size, size["WW"], has_bias, words == 1),
              {size["BEATS"] == 1 && has_bias && is_replayed ? size["PO"] * size["AW"] : 0,
               (size["BLOCK"] == 0 ? size.read_only_luts("WEIGHTS") : 0) +
                   size.read_only_luts("BIASES") + size.read_only_luts("SCALES"),
               (is_replayed ? size["PI"] * size["XW"] : 0) +
                   (is_replayed && size["KEPT_BLOCK"] == 0
                        ? written_luts(size["PI"] * size["XW"], size["BEATS"])
                        : 0),
               bits_of(words) + bits_of(size["BEATS"]) + bits_of(size["TILES"]), 1});
}

Parts matrix_product_parts(const BlockCall& call) {
  const Sizes size(call);
  const bool is_turned = size["TURNED"] != 0;
  const double part = size["HEADS"] * (is_turned ? size["TILES"] : size["BEATS"]);
  const double banks = is_turned ? 1 : size["PO"];
  const double words = std::ceil(size["VECTORS"] / banks) * part;
  return with(
      lane_parts(size, size["WW"] + (size["WSIGNED"] != 0 ? 0 : 1), false, false),
      {size["BLOCK"] == 0
           ? banks * written_luts((is_turned ? size["PO"] : size["PI"]) * size["WW"], 2 * words)
           : 0,
       size["TILES"] > 1
           ? size["PI"] * size["XW"] + written_luts(size["PI"] * size["XW"], size["BEATS"])
           : 0,
       bits_of(2 * words) + bits_of(part) + bits_of(size["VECTORS"]) + bits_of(size["ROWS"]) +
           bits_of(size["BEATS"]) + bits_of(size["TILES"])});
}

Parts sliding_window_parts(const BlockCall& call) {
  const Sizes size(call);
  const double words = size["ROWS"] * size["COLUMNS"] * size["CHANNELS"];
  const double rows =
      bits_of(2 * (size["HEIGHT"] + size["ROWS"] + size["KERNEL_H"] + size["TOP"]) + 4) + 1;
  const double places =
      bits_of(size["HEIGHT"] + size["COLUMNS"] + size["KERNEL_H"] + size["KERNEL_W"] + size["TOP"] +
              size["LEFT"] + size["OUT_H"] * size["STRIDE_H"] + size["OUT_W"] * size["STRIDE_W"] +
              4) +
      1;
  return {bits_of(words),
          rows,
          places,
          size["WIDTH"],
          size["BLOCK"] == 0 ? written_luts(size["WIDTH"], words) : 0,
          1};
}

Parts window_reduce_parts(const BlockCall& call) {
  const Sizes size(call);
  const double bits = size["COUNT"] > 1 ? size["LANES"] * size["AW"] : 0;
  return with(requant_parts(size, size["LANES"], size["AW"]),
              {size["OP"] == 0 ? bits : 0, size["OP"] == 0 ? 0 : bits,
               size["BEATS"] > 1 ? written_luts(bits, size["BEATS"]) : 0,
               bits_of(size["BEATS"]) + bits_of(size["COUNT"]), 1});
}

// Multiplying by a constant that is no power of two is a DSP's, with the sum behind it.
Parts element_wise_parts(const BlockCall& call) {
  const Sizes size(call);
  const auto is_scaled = [&](const char* factor) {
    return !std::has_single_bit(static_cast<std::uint64_t>(size[factor]));
  };
  const bool has_dsp = size["OP"] == 2 || is_scaled("AM") || is_scaled("BM");
  const double bits = size["LANES"] * size["XW"];
  return with(
      requant_parts(size, size["LANES"], size["XW"]),
      {!has_dsp && size["OP"] < 2 ? bits : 0, has_dsp ? bits : 0, size["OP"] == 3 ? bits : 0,
       size["ROW"] > 1 ? size["BW"] + bits_of(size["ROW"]) : 0, 1});
}

Parts requantize_parts(const BlockCall& call) {
  const Sizes size(call);
  return with(requant_parts(size, size["LANES"], size["IW"] + 1), {1});
}

Parts channel_scale_parts(const BlockCall& call) {
  const Sizes size(call);
  return with(requant_parts(size, size["LANES"], size["AW"]),
              {size["LANES"] * size["AW"],
               (size["BLOCK"] == 0 ? size.read_only_luts("FACTORS") : 0) +
                   (size["BLOCK_B"] == 0 ? size.read_only_luts("SUMMANDS") : 0),
               bits_of(size["BEATS"])});
}

Parts table_parts(const BlockCall& call) {
  const Sizes size(call);
  return {size["BLOCK"] == 0 ? size["LANES"] * size.read_only_luts("TABLE") : 0, 1};
}

Parts embedding_parts(const BlockCall& call) {
  const Sizes size(call);
  return {size["BLOCK"] == 0 ? size.read_only_luts("TABLE") : 0, size["IW"], bits_of(size["BEATS"]),
          1};
}

Parts fifo_parts(const BlockCall& call) {
  const Sizes size(call);
  return {size["BLOCK"] == 0 ? written_luts(size["WIDTH"], size["DEPTH"]) : 0,
          bits_of(size["DEPTH"]), 1};
}

Parts reorder_parts(const BlockCall& call) {
  const Sizes size(call);
  return {size["BLOCK"] == 0 ? written_luts(size["WIDTH"], 2 * size["BEATS"]) : 0,
          bits_of(size["BEATS"]) + bits_of(size["COUNT0"]) + bits_of(size["COUNT1"]) +
              bits_of(size["COUNT2"]),
          1};
}

// What is left of the dividend is shifted, compared and subtracted from; the quotient moves in
// behind it; in the end the rest is compared once more to round.
Parts divide_parts(const BlockCall& call) {
  const Sizes size(call);
  const double lanes = size["LANES"], steps = std::ceil(size["QW"] / size["BITS"]);
  const double rest = std::max(size["NW"] + 1, size["DW"] + size["DOWN"]);
  return {lanes * rest, lanes * rest * (size["BITS"] - 1), lanes * steps * size["BITS"],
          lanes * (size["OW"] + (size["XSIGNED"] != 0 ? size["XW"] : 0)),
          bits_of(steps + 2) + bits_of(size["ROW"]) + 1};
}

// A distance, the bits of it that make the power 0, a table of 64 words, a shift by up to 15.
Parts exponential_parts(const BlockCall& call) {
  const Sizes size(call);
  const double lanes = size["LANES"];
  return {lanes, lanes * (size["IW"] + 1),
          lanes * std::max(0.0, size["IW"] + size["MW"] - size["SHIFT"] - 10),
          size["IW"] + bits_of(size["ROW"])};
}

Parts row_root_parts(const BlockCall& call) {
  const Sizes size(call);
  return {size["VW"], size["OW"], 1};
}

Parts row_reduce_parts(const BlockCall& call) {
  const Sizes size(call);
  const double op = size["OP"], lanes = std::min(size["LANES"], size["SIZE"]), others = lanes - 1;
  const double x = size["IW"] + 1, sum = size["OW"];
  const bool is_sum = op == 0, is_squares = op == 1, compares = op > 1;
  const bool is_partial = std::fmod(size["SIZE"], size["LANES"]) != 0;
  return {is_sum ? others * sum : 0,
          is_squares ? others * sum : 0,
          compares ? 0 : sum,
          compares ? others * x : 0,
          compares && is_partial ? others * x : 0,
          compares ? x : 0,
          op == 4 ? others * bits_of(size["SIZE"] + size["LANES"] + 1) : 0,
          bits_of(std::ceil(size["SIZE"] / size["LANES"])),
          compares ? 0.0 : 1.0};
}

Parts length_mask_parts(const BlockCall& call) {
  const Sizes size(call);
  const double place = bits_of(size["BEATS"] * size["LANES"] + 1);
  return {size["LANES"] * size["OW"], size["LANES"] * std::max(place, size["LW"]),
          size["LW"] + place + bits_of(size["BEATS"]) + bits_of(size["VECTORS"]), 1};
}

Parts activation_parts(const BlockCall& call) {
  const Sizes size(call);
  return {size["LANES"] * (size["WIDTH"] - 1), 1};
}

// Each element of the store is chosen among what it held, what stood behind it and the lanes that a
// beat may bring to it: a bit and a place for each, of which a LUT takes five or six.
Parts converter_parts(std::int64_t size, std::int64_t from, std::int64_t to, int width) {
  const std::int64_t common = std::gcd(from, to), capacity = from + to - common,
                     unit = std::gcd(common, size);
  const std::int64_t ins = (size + from - 1) / from, outs = (size + to - 1) / to,
                     last = size - (ins - 1) * from;
  double chosen = 0;
  for (std::int64_t element = 0; element < capacity; ++element) {
    std::int64_t sources = 0;
    for (std::int64_t place = 0; place + last <= capacity; place += unit) {
      const std::int64_t lanes = place + from <= capacity ? from : last;
      if (place <= element && element < place + lanes) ++sources;
    }
    chosen += static_cast<double>(2 * sources + 2) / 5;
  }
  return {width * chosen, static_cast<double>(width * capacity),
          static_cast<double>(capacity / unit + 1),
          bits_of(static_cast<double>(ins + 1)) + bits_of(static_cast<double>(outs)), 1};
}

// Of requant: rounding, saturation, ties. Of DSPs: sums of several. Of LUTs: products of one pair
// and of several, by constants. Then sums of beats.
const std::vector<double> kLaneWeights = {0.5, 0.05, 1.95, 0.66, 0.57, 0.9, 0.5, 1.5, 0.3, 0.44};
const std::vector<double> kConverterWeights = {1.65, 0, 1.8, 2.6, 4.5};

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const auto add = [&](const char* block, std::vector<double> weights,
                       std::function<Parts(const BlockCall&)> parts) {
    result.emplace_back(LutModel{block, std::move(weights), std::move(parts)});
  };
  add("matrix_vector", with(kLaneWeights, {0.42, 0.9, 0.86, 2.1, 9.5}), matrix_vector_parts);
  add("matrix_product", with(kLaneWeights, {1, 0.87, 3}), matrix_product_parts);
  add("sliding_window", {11.1, 2.6, 14, 0.8, 1, 12.3}, sliding_window_parts);
  add("window_reduce", {0.5, 0.5, 1.5, 1.8, 1, 1, 2.45, 3}, window_reduce_parts);
  add("element_wise", {0.05, 1.09, 0, 0.83, 0.42, 2, 0.48, 4.8}, element_wise_parts);
  add("requantize", {0.68, 0.36, 1.7, 4.1}, requantize_parts);
  add("channel_scale", {0.91, 0, 0, 0.16, 1.45, 0.3}, channel_scale_parts);
  add("table_function", {1.23, 1.1}, table_parts);
  add("embedding", {1.5, 0.8, 3, 0}, embedding_parts);
  add("stream_fifo", {1, 4.4, 4}, fifo_parts);
  add("reorder_buffer", {1.3, 2.9, 0}, reorder_parts);
  add("divide", {3.55, 1.9, 0, 1.06, 3.1}, divide_parts);
  add("exponential", {73, 0.9, 2, 1.7}, exponential_parts);
  add("row_root", {3.17, 5.35, 17}, row_root_parts);
  add("row_reduce", {1.2, 0, 1.54, 2.05, 0, 0.5, 0, 4, 0}, row_reduce_parts);
  add("length_mask", {0.93, 0.17, 2.2, 0}, length_mask_parts);
  add("stream_fork", {2.5},
      [](const BlockCall& call) -> Parts { return {Sizes(call)["BRANCHES"]}; });
  add("width_converter", kConverterWeights, [](const BlockCall& call) {
    return converter_parts(call.inputs[0].size, call.inputs[0].lanes, call.outputs[0].lanes,
                           call.inputs[0].element.width);
  });
  add("relu", {1, 1}, activation_parts);
  add("leaky_relu", {0.85, 7}, activation_parts);
  add("random_leaky_relu", {1.08, 11.7}, activation_parts);
  add("skid_buffer", {1, 1}, [](const BlockCall& call) -> Parts {
    return {Sizes(call)["WIDTH"], 1};
  });
  add("vector_select", {1.56, 0}, [](const BlockCall& call) -> Parts {
    const Sizes size(call);
    return {bits_of(size["BEATS"] * size["VECTORS"]), 1};
  });
  add("stream_join", {4}, [](const BlockCall&) -> Parts { return {1}; });
  return result;
}();

double weighted(const std::vector<double>& weights, const Parts& parts) {
  check(weights.size() == parts.size(), "a weight for each part");
  return std::inner_product(weights.begin(), weights.end(), parts.begin(), 0.0);
}

}  // namespace
}  // namespace lut_models

double LutModel::luts(const BlockCall& call) const {
  return lut_models::weighted(weights, parts(call));
}

double converter_luts(std::int64_t size, std::int64_t from, std::int64_t to, int width) {
  if (from == to) return 0;
  return lut_models::weighted(lut_models::kConverterWeights,
                              lut_models::converter_parts(size, from, to, width));
}

double read_only_luts(const MemoryImage& image) {
  const std::int64_t depth = image.depth();
  if (depth <= 2) return 0;  // constants, or the address itself
  // A LUT is 64 words of a bit, up to eight of them are put together by multiplexers of their own.
  // The same words make the same LUT, turned over too, and what is one bit of the address needs
  // none.
  const auto address_bit = [](int bit) {
    std::uint64_t words = 0;
    for (int word = 0; word < 64; ++word)
      if (word >> bit & 1) words |= std::uint64_t{1} << word;
    return words;
  };
  std::set<std::uint64_t> functions;
  double choices = 0;
  const std::int64_t pieces = (depth + 63) / 64;
  for (std::int64_t element = 0; element < image.per_word; ++element)
    for (int bit = 0; bit < image.width; ++bit) {
      std::set<std::uint64_t> own;
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        std::uint64_t words = 0;
        const std::int64_t count = std::min<std::int64_t>(64, depth - piece * 64);
        for (std::int64_t word = 0; word < count; ++word) {
          const auto value = static_cast<std::uint64_t>(image.elements[static_cast<std::size_t>(
              (piece * 64 + word) * image.per_word + element)]);
          words |= (value >> bit & 1) << word;
        }
        const std::uint64_t mask =
            count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
        if ((words & 1) != 0) words = ~words & mask;
        own.insert(words);
        bool is_trivial = words == 0;
        for (int a = 0; a < 6; ++a) is_trivial = is_trivial || words == (address_bit(a) & mask);
        if (!is_trivial) functions.insert(words);
      }
      if (own.size() > 1) choices += static_cast<double>(own.size() - 1) / 8;
    }
  return static_cast<double>(functions.size()) + choices;
}

namespace {

bool only_moves(const Block& block) {
  constexpr std::array<std::string_view, 6> kMovers = {"width_converter", "stream_fifo",
                                                       "sliding_window",  "reorder_buffer",
                                                       "vector_select",   "stream_fork"};
  return std::ranges::find(kMovers, block.name) != kMovers.end();
}

// Bits that are not the same in all numbers of a table.
int changing_bits(const Values& table, int width) {
  std::uint64_t different = 0;
  for (const std::int64_t value : table)
    different |= static_cast<std::uint64_t>(value) ^ static_cast<std::uint64_t>(table.front());
  return std::popcount(different & ((std::uint64_t{1} << std::min(width, 63)) - 1));
}

double luts_of(const BlockCall& call) {
  if (const auto* model = Registry<LutModel>::instance().find(call.block.name))
    return model->luts(call);
  double luts = 0;
  for (const Stream& stream : call.outputs) luts += 2 * static_cast<double>(stream.bits());
  return luts;
}

}  // namespace

std::vector<int> changing_bits(const Netlist& netlist) {
  std::vector<int> result;
  for (const Netlist::NamedStream& stream : netlist.streams())
    result.push_back(stream.type.element.width);
  for (const std::size_t i : topological_order(netlist)) {
    const BlockCall call = netlist.call(i);
    for (const StreamId output : call.instance.outputs) {
      int& bits = result[output];
      const int before = call.instance.inputs.empty() ? bits : result[call.instance.inputs[0]];
      if (only_moves(call.block)) bits = std::min(bits, before);
      if (call.block.name == "relu") bits = std::max(1, std::min(bits, before) - 1);
      if (call.block.name == "requantize" && call.parameter("multiplier") == 1 &&
          call.parameter("shift") <= 0)
        bits = std::min(bits, before);
      if (call.block.name == "table_function")
        bits = std::max(1, changing_bits(call.table("table"), bits));
    }
  }
  return result;
}

Resources resources_of(const BlockCall& call) {
  Resources result = call.block.resources(call);
  result.lut += std::max<std::int64_t>(0, std::lround(luts_of(call)));
  return result;
}

BlockCall narrowed(const BlockCall& call, const std::vector<int>& changing_bits) {
  BlockCall result = call;
  if (only_moves(call.block))
    result.inputs[0].element.width = changing_bits[call.instance.inputs[0]];
  return result;
}

Resources resources_of(const BlockCall& call, const std::vector<int>& changing_bits) {
  Resources result = call.block.resources(call);
  result.lut += std::max<std::int64_t>(0, std::lround(luts_of(narrowed(call, changing_bits))));
  return result;
}

}  // namespace lathe::hardware
