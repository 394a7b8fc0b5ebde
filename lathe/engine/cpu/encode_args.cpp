#include "lathe/engine/cpu/encode_args.h"

#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/row_codes.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::engine {

using numerics::ScaleRule;

std::optional<EncodeArgs> encode_args(const NumberFormat& format, std::int64_t columns) {
  const numerics::ScaledSpec* const spec = numerics::find_scaled_spec(format);
  if (spec == nullptr || !numerics::has_row_codes(format)) return std::nullopt;
  const auto& codec = std::get<numerics::IntegerCodec>(spec->codec);
  const FormatFacts& facts = format.facts();
  EncodeArgs args{};
  args.columns = columns;
  args.block = numerics::blocks_of_row(facts, columns) > 1 ? facts.block_columns : columns;
  args.low = static_cast<float>(codec.low);
  args.high = static_cast<float>(codec.high);
  args.offset = numerics::code_layout(format) == numerics::CodeLayout::Unsigned ? 128 : 0;
  args.divisor = spec->divisor;
  args.step = spec->element_step;
  switch (spec->rule) {
    case ScaleRule::Constant:
      args.rule = CodeScale::Given;
      args.scale = spec->element_step;
      args.is_power_of_two = true;
      return args;
    case ScaleRule::Given:
    case ScaleRule::GivenPowerOfTwo:
      // A scale for each row would have to come with the rows.
      if (facts.granularity != Granularity::Tensor || spec->element_step != 1) return std::nullopt;
      args.rule = CodeScale::Given;
      args.is_power_of_two = spec->rule == ScaleRule::GivenPowerOfTwo;
      return args;
    case ScaleRule::SharedExponent:
      args.rule = CodeScale::SharedExponent;
      args.highest_exponent = spec->exponent.highest_exponent;
      args.round_up = static_cast<std::int32_t>(spec->exponent.round_up);
      args.lowest_code = spec->exponent.lowest_code;
      return args;
    case ScaleRule::LargestMagnitude:
      if (spec->by_reciprocal || spec->element_step != 1) return std::nullopt;
      args.rule = CodeScale::LargestMagnitude;
      return args;
    case ScaleRule::Range:
      if (spec->element_step != 1) return std::nullopt;
      args.rule = CodeScale::Range;
      args.divisor = args.high;
      return args;
  }
  return std::nullopt;
}

}  // namespace lathe::engine
