// Logarithmic numbers: zero and plus and minus the powers of two 2^(code - bias), code from 1 on.
// It is a minifloat without mantissa, so the nearest number is the nearest on the line: 1.5 is the
// limit between 1 and 2, not the square root of 2. That has the smaller squared error and lets
// stochastic rounding be right on average.
#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/minifloat.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 8));
  MinifloatCodec codec{width - 1, 0, usual_bias(width - 1), Specials::None};
  const BiasRange range = bias_range(codec);
  const std::string bias = arguments.option("bias").value_or(std::to_string(codec.bias));
  ScaledSpec spec;
  if (bias == "auto")
    use_given_power_of_two(spec, arguments);
  else
    codec.bias = static_cast<int>(parse_integer(bias, "bias", range.low, range.high));
  arguments.finish();
  spec.codec = codec;
  spec.facts.family = "log";
  spec.facts.text =
      fmt::format("log:{},bias={}{}", width, bias == "auto" ? bias : std::to_string(codec.bias),
                  spec.facts.text);
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "log",
    .summary = "zero and powers of two",
    .syntax = "log:WIDTH[,bias=B|auto]",
    .parse = parse,
    .examples = {"log:8,bias=63", "log:4,bias=5", "log:4,bias=auto", "log:2,bias=0"},
}};

}  // namespace
}  // namespace lathe::numerics
