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

// Rounding and saturating of so many bits: an increment, and a choice for each result bit. A
// multiplier in front is a DSP's, and so is part of the rounding.
double requant_luts(double bits, double multiplier_bits, double shift, double result) {
  const double kept = std::max(1.0, bits + multiplier_bits - std::max(0.0, shift));
  return (multiplier_bits > 0 ? 0.5 * kept : kept) + result + 4;
}

double matrix_vector_luts(const BlockCall& call) {
  const Sizes size(call);
  const double words = size["BEATS"] * size["TILES"];
  // Sums over beats; one beat's are the DSPs' own, but for some of the bias.
  const double sum = size["BEATS"] > 1 ? size["AW"] : 0.3 * size["AW"];
  const double lane = sum + requant_luts(size["AW"], size["MW"], size["SHIFT"], size["OW"]);
  double luts = size["PO"] * lane;
  if (size["BLOCK"] == 0) luts += read_only_luts(size["PI"] * size["PO"] * size["WW"], words);
  if (size["BIAS"] != 0) luts += read_only_luts(size["PO"] * size["AW"], size["TILES"]);
  if (size["SCALED"] != 0) luts += read_only_luts(size["PO"] * size["MW"], size["TILES"]);
  if (size["TILES"] > 1) {  // what is replayed, and the choice between it and the stream
    const double beat = size["PI"] * size["XW"];
    luts += memory_luts(beat, size["BEATS"]) + beat;
  }
  // Products that are too small for a DSP.
  const double x = size["XW"] + (size["XSIGNED"] != 0 ? 0 : 1);
  if (dsp_of_product(static_cast<int>(x), static_cast<int>(size["WW"])) == 0)
    luts += size["PI"] * size["PO"] * (1.4 * x * size["WW"] + 0.8 * size["AW"]);
  return luts + 6 + 2 * (address_bits(words) + address_bits(size["BEATS"]));
}

double element_wise_luts(const BlockCall& call) {
  const Sizes size(call);
  // Multiplying by a constant is an adder for each bit of it behind the first.
  const auto scaled = [&](const char* width, const char* factor) {
    const int ones = std::popcount(static_cast<std::uint64_t>(size[factor]));
    return (ones - 1) * (size[width] + address_bits(size[factor]));
  };
  return size["LANES"] * (scaled("AW", "AM") + scaled("BW", "BM") + size["XW"] +
                          requant_luts(size["XW"], size["MW"], size["SHIFT"], size["OW"])) +
         6;
}

double requantize_luts(const BlockCall& call) {
  const Sizes size(call);
  return size["LANES"] * requant_luts(size["IW"], size["MW"], size["SHIFT"], size["OW"]) + 3;
}

double table_luts(const BlockCall& call) {
  const Sizes size(call);
  if (size["BLOCK"] != 0) return 3;
  return size["LANES"] * read_only_luts(size["OW"], std::exp2(size["IW"])) + 3;
}

double fifo_luts(const BlockCall& call) {
  const Sizes size(call);
  const double pointers = 4 * address_bits(size["DEPTH"]) + 4;
  return pointers + (size["BLOCK"] != 0 ? 0 : memory_luts(size["WIDTH"], size["DEPTH"]));
}

double lane_luts(const BlockCall& call, double a_bit) {
  const Sizes size(call);
  return size["LANES"] * (size["WIDTH"] - 1) * a_bit + 2;
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const auto add = [&](const char* block, std::function<double(const BlockCall&)> luts) {
    result.emplace_back(LutModel{block, std::move(luts)});
  };
  add("matrix_vector", matrix_vector_luts);
  add("element_wise", element_wise_luts);
  add("requantize", requantize_luts);
  add("table_function", table_luts);
  add("stream_fifo", fifo_luts);
  add("width_converter", [](const BlockCall& call) {
    return converter_luts(call.inputs[0].size, call.inputs[0].lanes, call.outputs[0].lanes,
                          call.inputs[0].element.width);
  });
  add("relu", [](const BlockCall& call) { return lane_luts(call, 1); });
  add("leaky_relu", [](const BlockCall& call) { return lane_luts(call, 3); });
  return result;
}();

}  // namespace
}  // namespace lut_models

// A beat may be put at several places of the store.
double converter_luts(std::int64_t size, std::int64_t from, std::int64_t to, int width) {
  if (from == to) return 0;
  const std::int64_t common = std::gcd(from, to), capacity = from + to - common,
                     places = capacity / std::gcd(common, size);
  return 0.87 * static_cast<double>(capacity * width * places) + 34;
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
