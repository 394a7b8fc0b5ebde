#include "lathe/hardware/lut_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"

namespace lathe::hardware {
namespace lut_models {
namespace {

// The module's parameters, by which its text counts.
class Sizes {
 public:
  explicit Sizes(const BlockCall& call) : parameters_(call.block.module_parameters(call)) {}
  double operator[](std::string_view name) const {
    for (const auto& [parameter, value] : parameters_.integers)
      if (parameter == name) return static_cast<double>(value);
    check(false, "a parameter that the module has");
    return 0;
  }

 private:
  ModuleParameters parameters_;
};

double address_bits(double depth) {
  return depth <= 1 ? 0 : std::ceil(std::log2(depth));
}

// A memory that is only read: a bit is a function of the address, of which six inputs make a LUT.
// Few addresses have few functions, which bits share.
double read_only_luts(double width, double depth) {
  const double inputs = address_bits(depth);
  if (inputs <= 1) return 0;
  const double functions = inputs < 5 ? std::exp2(std::exp2(inputs)) - 2 : 1e9;
  return std::min(width, functions) * std::max(1.0, std::exp2(inputs - 6));
}

// A memory of LUTs: four of them hold 32 words of six bits, or 64 words of three.
double memory_luts(double width, double depth) {
  if (depth <= 1) return 0;
  if (depth <= 32) return 4 * std::ceil(width / 6);
  return 4 * std::ceil(width / 3) * std::ceil(depth / 64) + (depth > 64 ? width : 0);
}

// The parts of a requant, a lane: the bits that rounding adds to, where anything is dropped, those
// that a result is chosen for, and those above them, which say whether it is saturated.
struct RequantParts {
  double rounded = 0, chosen = 0, above = 0;
  bool is_scaled = false;
};
RequantParts requant_parts(const Sizes& size, double bits) {
  const double kept = std::max(1.0, bits + size["MW"] - size["SHIFT"]), result = size["OW"];
  const bool rounds = size["SHIFT"] > 0 && size["MODE"] != 1;
  return {.rounded = rounds ? std::max(kept, result + 2) : 0,
          .chosen = rounds || kept > result ? result : 0,
          .above = std::max(0.0, kept - result),
          .is_scaled = size["MW"] > 0};
}

double matrix_vector_luts(const BlockCall& call) {
  const Sizes size(call);
  const double words = size["BEATS"] * size["TILES"], products = size["PI"] * size["PO"];
  const double x = size["XW"] + (size["XSIGNED"] != 0 ? 0 : 1);
  const RequantParts requant = requant_parts(size, size["AW"]);
  double luts = size["PO"] * ((size["BEATS"] > 1 ? 0.62 * size["AW"] : 0) +
                              (requant.is_scaled ? 0.99 * requant.rounded : 0) +
                              1.72 * requant.chosen + 0.64 * requant.above);
  const double factors = x + size["WW"];  // bits of both
  if (dsp_of_product(static_cast<int>(x), static_cast<int>(size["WW"]),
                     static_cast<int>(size["AW"])) > 0)
    luts += 0.24 * size["PO"] * (size["PI"] - 1) * size["AW"];  // the rest is the DSPs' own
  else if (words == 1)                                          // constants
    luts += 1.21 * products * size["AW"];
  else if (factors <= 7)  // a table for each bit, and an adder
    luts += 1.11 * products * (factors * std::max(1.0, std::exp2(factors - 6)) + size["AW"]);
  else  // an adder for each bit of the narrower factor
    luts += 1.24 * products * std::min(x, size["WW"]) * size["AW"];
  if (size["BLOCK"] == 0) luts += 0.85 * read_only_luts(products * size["WW"], words);
  if (size["BIAS"] != 0) luts += 1.13 * read_only_luts(size["PO"] * size["AW"], size["TILES"]);
  if (size["SCALED"] != 0) luts += 1.13 * read_only_luts(size["PO"] * size["MW"], size["TILES"]);
  if (size["TILES"] > 1) luts += 2.45 * size["PI"] * size["XW"];  // kept, and chosen again
  return luts + 1.33 * (address_bits(words) + address_bits(size["BEATS"]));
}

double sliding_window_luts(const BlockCall& call) {
  const Sizes size(call);
  const double words = size["ROWS"] * size["COLUMNS"] * size["CHANNELS"];
  const double rows =
      address_bits(2 * (size["HEIGHT"] + size["ROWS"] + size["KERNEL_H"] + size["TOP"]) + 4);
  const double places = address_bits(
      size["HEIGHT"] + size["COLUMNS"] + size["KERNEL_H"] + size["KERNEL_W"] + size["TOP"] +
      size["LEFT"] + size["OUT_H"] * size["STRIDE_H"] + size["OUT_W"] * size["STRIDE_W"] + 4);
  const bool is_in_luts = size["BLOCK"] == 0 && words > 4;
  return 12 + 9.9 * address_bits(words) + 2.5 * (rows + 1) + 12.4 * (places + 1) +
         0.8 * size["WIDTH"] + (is_in_luts ? memory_luts(size["WIDTH"], words) : 0);
}

double window_reduce_luts(const BlockCall& call) {
  const Sizes size(call);
  const RequantParts requant = requant_parts(size, size["AW"]);
  return size["LANES"] * ((size["OP"] == 0 ? 3.4 : 0.97) * size["AW"] +
                          (requant.is_scaled ? 1.0 : 0.47) * requant.rounded) +
         3.1 * (size["BEATS"] > 1 ? memory_luts(size["LANES"] * size["AW"], size["BEATS"]) : 0) +
         1.3 * (address_bits(size["BEATS"]) + address_bits(size["COUNT"]));
}

// Multiplying by a constant that is no power of two is a DSP's, with the sum behind it.
double element_wise_luts(const BlockCall& call) {
  const Sizes size(call);
  const auto is_scaled = [&](const char* factor) {
    return !std::has_single_bit(static_cast<std::uint64_t>(size[factor]));
  };
  const RequantParts requant = requant_parts(size, size["XW"]);
  const double sum = size["OP"] >= 2 || is_scaled("AM") || is_scaled("BM") ? 0 : 0.71 * size["XW"];
  return 14 + size["LANES"] * (sum + (requant.is_scaled ? 0.62 : 0.37) * requant.rounded +
                               1.43 * requant.chosen + 0.29 * requant.above);
}

double requantize_luts(const BlockCall& call) {
  const Sizes size(call);
  const RequantParts requant = requant_parts(size, size["IW"]);
  return 2 + size["LANES"] * ((requant.is_scaled ? 0.83 : 0.62) * requant.rounded +
                              1.18 * requant.chosen + 1.02 * requant.above);
}

double channel_scale_luts(const BlockCall& call) {
  const Sizes size(call);
  const RequantParts requant = requant_parts(size, size["AW"]);
  return 4 + size["LANES"] * (1.09 * size["AW"] + 0.14 * (requant.chosen + requant.above));
}

// Functions that people tabulate have much in common with themselves.
double table_luts(const BlockCall& call) {
  const Sizes size(call);
  if (size["BLOCK"] != 0) return 3;
  return size["LANES"] * 0.24 * read_only_luts(size["OW"], std::exp2(size["IW"])) + 5;
}

double fifo_luts(const BlockCall& call) {
  const Sizes size(call);
  return 4 + 4.4 * address_bits(size["DEPTH"]) +
         (size["BLOCK"] != 0 ? 0 : memory_luts(size["WIDTH"], size["DEPTH"]));
}

double lane_luts(const BlockCall& call, double a_bit) {
  const Sizes size(call);
  return size["LANES"] * (size["WIDTH"] - 1) * a_bit + 1;
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const auto add = [&](const char* block, std::function<double(const BlockCall&)> luts) {
    result.emplace_back(LutModel{block, std::move(luts)});
  };
  add("matrix_vector", matrix_vector_luts);
  add("sliding_window", sliding_window_luts);
  add("window_reduce", window_reduce_luts);
  add("element_wise", element_wise_luts);
  add("requantize", requantize_luts);
  add("channel_scale", channel_scale_luts);
  add("table_function", table_luts);
  add("stream_fifo", fifo_luts);
  add("stream_fork", [](const BlockCall& call) { return 2.9 * Sizes(call)["BRANCHES"]; });
  add("width_converter", [](const BlockCall& call) {
    return converter_luts(call.inputs[0].size, call.inputs[0].lanes, call.outputs[0].lanes,
                          call.inputs[0].element.width);
  });
  add("relu", [](const BlockCall& call) { return lane_luts(call, 1); });
  add("leaky_relu", [](const BlockCall& call) { return lane_luts(call, 1); });
  add("stream_join", [](const BlockCall&) { return 4.0; });
  return result;
}();

}  // namespace
}  // namespace lut_models

// Each element of the store is chosen among the lanes that a beat may bring to it and what it held.
double converter_luts(std::int64_t size, std::int64_t from, std::int64_t to, int width) {
  if (from == to) return 0;
  const std::int64_t common = std::gcd(from, to), capacity = from + to - common,
                     unit = std::gcd(common, size);
  std::int64_t sources = 0;
  for (std::int64_t element = 0; element < capacity; ++element)
    for (std::int64_t place = 0; place + unit <= capacity; place += unit)
      if (place <= element && element < place + from) ++sources;
  const double a_vector = size <= from ? 0.5 : 0;  // that is one beat: less is known of the store
  return static_cast<double>(width) * ((1.66 + a_vector) * static_cast<double>(capacity) +
                                       0.62 * static_cast<double>(sources)) +
         4.6 * std::ceil(std::log2(static_cast<double>(size + from + to + 1)));
}

Resources resources_of(const BlockCall& call) {
  Resources result = call.block.resources(call);
  const auto* model = Registry<LutModel>::instance().find(call.block.name);
  double luts = 0;
  if (model != nullptr) {
    luts = model->luts(call);
  } else {
    for (const Stream& stream : call.outputs) luts += 2 * static_cast<double>(stream.bits());
  }
  result.lut += static_cast<std::int64_t>(std::lround(luts));
  return result;
}

}  // namespace lathe::hardware
