// Fixed point: whole numbers of `width` bits times 2^-fraction. The fraction may be negative or
// larger than the width; with "auto" it comes with the values, as the scale 2^-fraction.
#include "lathe/numerics/fixed.h"

#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

IntegerCodec fixed_codec(int width, bool is_unsigned) {
  if (is_unsigned) return {width, 0, (std::int64_t{1} << width) - 1, 0};
  const std::int64_t half = std::int64_t{1} << (width - 1);
  return {width, -half, half - 1, 0};
}

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 32));
  const std::string fraction_text = arguments.text("fraction");
  const bool is_unsigned = arguments.flag("unsigned");
  const bool is_auto = fraction_text == "auto";
  ScaledSpec spec;
  spec.codec = fixed_codec(width, is_unsigned);
  spec.facts.family = "fixed";
  if (is_auto) {
    spec.facts.text = fmt::format("fixed:{},auto{}", width, is_unsigned ? ",unsigned" : "");
    use_given_power_of_two(spec, arguments);
  } else {
    // Within these every step and every end is a float.
    const std::int64_t fraction = parse_integer(fraction_text, "fraction", -64, 96);
    spec.element_step = power_of_two(static_cast<int>(-fraction));
    spec.facts.text = fmt::format("fixed:{},{}{}", width, fraction, is_unsigned ? ",unsigned" : "");
  }
  arguments.finish();
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "fixed",
    .summary = "fixed point: two's complement with a binary point",
    .syntax = "fixed:WIDTH,FRACTION|auto[,unsigned][,channel]",
    .parse = parse,
    .examples = {"fixed:8,4", "fixed:16,8", "fixed:4,2", "fixed:8,7,unsigned", "fixed:8,auto",
                 "fixed:8,auto,channel", "fixed:32,16"},
}};

}  // namespace
}  // namespace lathe::numerics
