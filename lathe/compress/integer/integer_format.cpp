#include "lathe/compress/integer/integer_format.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "lathe/compress/quantizers.h"
#include "lathe/numerics/integer/integer128.h"
#include "lathe/numerics/scaled_format.h"
#include "lathe/numerics/term_format.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::compress {
namespace {

using numerics::IntegerCodec;
using numerics::ScaledSpec;
using numerics::ScaleRule;

std::shared_ptr<const NumberFormat> format_of(const Graph& graph, NodeId quantizer) {
  return parse_format(graph.attribute(quantizer).text("format"));
}

// The scales that a quantizer is handed, as its format uses them.
std::vector<double> given_scales(const Graph& graph, const State& state, NodeId quantizer,
                                 const FormatFacts& facts) {
  const Tensor* const scale = scale_of(graph, state, quantizer);
  if (scale == nullptr) return {1.0};
  std::vector<double> scales;
  for (const float value : scale->data<float>())
    scales.push_back(ops::effective_scale(facts, value));
  return scales;
}

// What no integers times a scale of a tensor or a row can be.
std::string hindrance(const NumberFormat& format) {
  const FormatFacts& facts = format.facts();
  if (facts.has_zero_point) return "has a zero point";
  if (const auto* const terms = numerics::find_term_spec(format))
    return terms->terms > 1 ? "is a sum of several terms" : "";
  const ScaledSpec* const spec = numerics::find_scaled_spec(format);
  if (spec == nullptr) return "is simulated in floats alone";
  if (std::holds_alternative<numerics::LevelCodec>(spec->codec))
    return "has numbers that are no multiples of a step";
  if (facts.granularity == lathe::Granularity::Block && spec->rule != ScaleRule::SharedExponent)
    return "has scales for parts of a row";
  return "";
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

// The exponent of the lowest bit that is set in any of the finite numbers; 0 where all are 0.
int lowest_bit(std::span<const double> values) {
  int lowest = INT32_MAX;
  for (const double value : values) {
    if (value == 0) continue;
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent);
    const auto digits = static_cast<std::int64_t>(std::ldexp(std::fabs(mantissa), 53));
    lowest = std::min(lowest, exponent - 53 + __builtin_ctzll(static_cast<std::uint64_t>(digits)));
  }
  return lowest == INT32_MAX ? 0 : lowest;
}

// What the numbers of a row are multiples of, apart from powers of two: the given scale, or the one
// that the format made of the row.
double row_scale(const NumberFormat& format, std::span<const float> row, double given) {
  const ScaledSpec* const spec = numerics::find_scaled_spec(format);
  if (spec != nullptr && spec->rule != ScaleRule::LargestMagnitude) return given;
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  if (largest == 0) return 1;
  if (spec == nullptr)  // binary and ternary: one magnitude
    return numerics::find_term_spec(format)->is_unit ? 1.0 : double{largest};
  return largest / static_cast<double>(std::get<IntegerCodec>(spec->codec).high) /
         spec->element_step;
}

}  // namespace

std::variant<IntegerFormat, NoIntegers> activation_integers(const Graph& graph, const State& state,
                                                            NodeId quantizer) {
  const std::shared_ptr<const NumberFormat> format = format_of(graph, quantizer);
  const FormatFacts& facts = format->facts();
  const auto refused = [&](std::string_view why) {
    return NoIntegers{fmt::format("{} {}", facts.text, why)};
  };
  if (const std::string why = hindrance(*format); !why.empty()) return refused(why);
  const ScaledSpec* const spec = numerics::find_scaled_spec(*format);
  if (spec == nullptr || facts.scale_source == ScaleSource::Local)
    return refused("makes its scales while it runs");
  const auto* const codec = std::get_if<IntegerCodec>(&spec->codec);
  if (codec == nullptr) return refused("has numbers that are not evenly spaced");
  const std::vector<double> scales = given_scales(graph, state, quantizer, facts);
  if (scales.size() != 1) return refused("has a scale for each row");
  return IntegerFormat{.range = {.width = codec->bits,
                                 .is_signed = codec->low < 0,
                                 .is_symmetric = codec->low == -codec->high},
                       .scale = scales[0] * spec->element_step};
}

std::vector<std::int64_t> integer_codes(const Tensor& floats, const IntegerFormat& format) {
  const IntegerCodec codec{.bits = format.range.width,
                           .low = format.range.low(),
                           .high = format.range.high(),
                           .zero = 0};
  const auto scale = static_cast<float>(format.scale);
  std::vector<std::int64_t> codes;
  for (const float value : floats.data<float>())
    codes.push_back(codec.round(value / scale, Rounding::NearestEven, 0));
  return codes;
}

std::variant<IntegerParameter, NoIntegers> parameter_integers(const Graph& graph,
                                                              const State& state, NodeId quantizer,
                                                              const std::vector<float>& values,
                                                              std::int64_t rows, bool one_scale) {
  const std::shared_ptr<const NumberFormat> format = format_of(graph, quantizer);
  const FormatFacts& facts = format->facts();
  const auto refused = [&](std::string_view why) {
    return NoIntegers{fmt::format("{} {}", facts.text, why)};
  };
  if (const std::string why = hindrance(*format); !why.empty()) return refused(why);
  const bool has_row_scales = facts.granularity != lathe::Granularity::Tensor;
  if (has_row_scales && one_scale && facts.scale_source == ScaleSource::Given)
    return refused("has a scale for each row");
  const std::vector<double> given = given_scales(graph, state, quantizer, facts);
  const std::size_t parts = has_row_scales && !one_scale ? static_cast<std::size_t>(rows) : 1;
  const std::size_t width = values.size() / parts;
  const ScaledSpec* const spec = numerics::find_scaled_spec(*format);
  const double integer_step = spec == nullptr ? 1.0 : spec->element_step;
  const bool has_even_steps =
      spec == nullptr || (std::holds_alternative<IntegerCodec>(spec->codec) &&
                          spec->rule != ScaleRule::SharedExponent);
  IntegerParameter result;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::span<const float> row(values.data() + part * width, width);
    const double scale = row_scale(*format, row, given[part % given.size()]) * integer_step;
    std::vector<double> elements;
    // A product with a scale was rounded to a float: its integer is the nearest one.
    for (const float value : row)
      elements.push_back(is_power_of_two(scale) ? value / scale : std::nearbyint(value / scale));
    // Codes are taken as they are; only where steps differ is the finest that is there looked for.
    const int exponent = has_even_steps ? 0 : lowest_bit(elements);
    for (const double element : elements) {
      const double integer = std::ldexp(element, -exponent);
      if (std::fabs(integer) > 0x1p31) return refused("needs integers of more than 32 bits here");
      result.values.push_back(static_cast<std::int64_t>(integer));
    }
    result.scales.push_back(std::ldexp(scale, exponent));
  }
  return result;
}

}  // namespace lathe::compress
