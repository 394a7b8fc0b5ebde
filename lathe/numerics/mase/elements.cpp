// Twins of MASE's quantizers that treat every value alone.
#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/mase/quantizers.h"
#include "lathe/numerics/mase/simulated_format.h"

namespace lathe::numerics {

namespace {

template <typename Quantizer>
std::function<void(const SimulatedBlock&)> on_every_value(Quantizer quantizer) {
  return [quantizer](const SimulatedBlock& block) {
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (std::int64_t c = 0; c < block.columns; ++c)
        block.y[r * block.stride + c] = quantizer(block.x[r * block.stride + c]);
  };
}

// The largest and the smallest number and the least positive one, from the quantizer itself.
template <typename Quantizer>
SimulatedSpec make_spec(std::string family, std::string text, int bits, double step,
                        Quantizer quantizer) {
  SimulatedSpec spec;
  spec.facts.family = std::move(family);
  spec.facts.text = std::move(text);
  spec.facts.element_bits = bits;
  constexpr float kHuge = 0x1p126f;
  spec.facts.maximum = quantizer(kHuge);
  spec.facts.minimum = quantizer(-kHuge);
  spec.facts.smallest_step = step;
  spec.facts.pass_minimum = spec.facts.minimum;
  spec.facts.pass_maximum = spec.facts.maximum;
  spec.quantize = on_every_value(quantizer);
  return spec;
}

std::shared_ptr<const NumberFormat> parse_integer_twin(std::string_view text, bool is_floor) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 32));
  const auto fraction = static_cast<int>(arguments.integer("fraction", -64, 96));
  const bool is_unsigned = arguments.flag("unsigned");
  arguments.finish();
  const float half = power_of_two(width - 1);
  const MaseInteger quantizer{
      .steps_per_one = power_of_two(fraction),
      .low = is_unsigned ? 0 : -half,
      // In float32, so that wide formats reach one step too far, as they do in MASE.
      .high = static_cast<float>(double{half} * (is_unsigned ? 2 : 1) - 1),
      .is_floor = is_floor};
  const std::string family = is_floor ? "mase.integer_floor" : "mase.integer";
  SimulatedSpec spec = make_spec(
      family, fmt::format("{}:{},{}{}", family, width, fraction, is_unsigned ? ",unsigned" : ""),
      width, power_of_two(-fraction), quantizer);
  use_run(spec, {.kind = is_floor ? MaseTable::Kind::IntegerFloor : MaseTable::Kind::Integer,
                 .steps_per_one = quantizer.steps_per_one,
                 .low = quantizer.low,
                 .high = quantizer.high});
  return make_simulated_format(std::move(spec));
}

struct MinifloatArguments {
  int width = 0, exponent_bits = 0, bias = 0;
  int mantissa_bits() const { return width - exponent_bits - 1; }
  int low() const { return -bias; }
  int high() const { return (1 << exponent_bits) - 1 - bias; }
  MaseTable table(MaseTable::Kind kind) const {
    return {.kind = kind, .mantissa_bits = mantissa_bits(), .lowest = low(), .highest = high()};
  }
  std::string text(std::string_view family) const {
    return fmt::format("{}:{},{},bias={}", family, width, exponent_bits, bias);
  }
};

MinifloatArguments minifloat_arguments(std::string_view text) {
  FormatArguments arguments(text);
  MinifloatArguments result;
  result.width = static_cast<int>(arguments.integer("width", 3, 24));
  result.exponent_bits =
      static_cast<int>(arguments.integer("exponent bits", 1, std::min(8, result.width - 2)));
  // Every scale must be a float.
  const int least = (1 << result.exponent_bits) - 1 - 127;
  result.bias = static_cast<int>(arguments.integer_option("bias", std::max(-100, least), 126)
                                     .value_or((1 << (result.exponent_bits - 1)) - 1));
  arguments.finish();
  return result;
}

std::shared_ptr<const NumberFormat> parse_denorm(std::string_view text) {
  const MinifloatArguments a = minifloat_arguments(text);
  const MaseMinifloatDenorm quantizer{a.mantissa_bits(), a.low(), a.high()};
  SimulatedSpec spec = make_spec("mase.minifloat_denorm", a.text("mase.minifloat_denorm"), a.width,
                                 power_of_two(-a.bias - a.mantissa_bits()), quantizer);
  use_run(spec, a.table(MaseTable::Kind::MinifloatDenorm));
  return make_simulated_format(std::move(spec));
}

std::shared_ptr<const NumberFormat> parse_ieee(std::string_view text) {
  const MinifloatArguments a = minifloat_arguments(text);
  const MaseMinifloatIeee quantizer{a.mantissa_bits(), a.low(), a.high()};
  SimulatedSpec spec = make_spec("mase.minifloat_ieee", a.text("mase.minifloat_ieee"), a.width,
                                 power_of_two(1 - a.bias - a.mantissa_bits()), quantizer);
  use_run(spec, a.table(MaseTable::Kind::MinifloatIeee));
  return make_simulated_format(std::move(spec));
}

std::shared_ptr<const NumberFormat> parse_log(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 8));
  const int largest_code = (1 << (width - 1)) - 1;
  const auto bias = static_cast<int>(
      arguments.integer_option("bias", largest_code - 127, 126).value_or(largest_code / 2));
  arguments.finish();
  const MaseLog quantizer{-bias, largest_code - bias};
  SimulatedSpec spec = make_spec("mase.log", fmt::format("mase.log:{},bias={}", width, bias), width,
                                 power_of_two(-bias), quantizer);
  use_run(spec, {.kind = MaseTable::Kind::Log,
                 .lowest = quantizer.low,
                 .highest = quantizer.high,
                 .offset = quantizer.offset()});
  return make_simulated_format(std::move(spec));
}

std::shared_ptr<const NumberFormat> parse_binary(std::string_view text) {
  FormatArguments(text).finish();
  SimulatedSpec spec = make_spec("mase.binary", "mase.binary", 1, 2, [](float x) {
    return std::isnan(x) ? x : x >= 0 ? 1.0f : -1.0f;
  });
  spec.kind = SimulatedSpec::Kind::Sign;
  spec.quantize_fast = [](const Kernels& path, const BlockArgs& args) {
    const float one = 1;
    path.sign_terms(
        &one, 1,
        {.x = args.x, .y = args.y, .count = args.rows * args.columns, .streams = args.streams});
  };
  return make_simulated_format(std::move(spec));
}

const Register registrations[] = {
    Register{FormatFamily{
        .name = "mase.integer",
        .summary = "MASE's integer quantizer, value for value",
        .syntax = "mase.integer:WIDTH,FRACTION[,unsigned]",
        .parse = [](std::string_view text) { return parse_integer_twin(text, false); },
        .examples = {"mase.integer:8,4", "mase.integer:8,4,unsigned", "mase.integer:32,16"}}},
    Register{
        FormatFamily{.name = "mase.integer_floor",
                     .summary = "MASE's integer quantizer that rounds down, value for value",
                     .syntax = "mase.integer_floor:WIDTH,FRACTION[,unsigned]",
                     .parse = [](std::string_view text) { return parse_integer_twin(text, true); },
                     .examples = {"mase.integer_floor:8,3"}}},
    Register{FormatFamily{.name = "mase.minifloat_denorm",
                          .summary = "MASE's minifloat without a leading one, value for value",
                          .syntax = "mase.minifloat_denorm:WIDTH,EXPONENT[,bias=B]",
                          .parse = parse_denorm,
                          .examples = {"mase.minifloat_denorm:8,4,bias=7"}}},
    Register{FormatFamily{.name = "mase.minifloat_ieee",
                          .summary = "MASE's minifloat with a leading one, value for value",
                          .syntax = "mase.minifloat_ieee:WIDTH,EXPONENT[,bias=B]",
                          .parse = parse_ieee,
                          .examples = {"mase.minifloat_ieee:8,4,bias=7"}}},
    Register{FormatFamily{.name = "mase.log",
                          .summary = "MASE's powers of two, value for value",
                          .syntax = "mase.log:WIDTH[,bias=B]",
                          .parse = parse_log,
                          .examples = {"mase.log:8,bias=63"}}},
    Register{FormatFamily{.name = "mase.binary",
                          .summary = "MASE's signs, value for value",
                          .syntax = "mase.binary",
                          .parse = parse_binary,
                          .examples = {"mase.binary"}}},
};

}  // namespace
}  // namespace lathe::numerics
