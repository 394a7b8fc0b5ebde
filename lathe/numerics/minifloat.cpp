// Small floating point numbers: the OCP formats by name, any other by width, exponent bits and
// bias. Numbers beyond the largest become the largest, infinity included, unless "overflow" asks
// for what IEEE 754 does.
#include "lathe/numerics/minifloat.h"

#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

std::optional<MinifloatCodec> named_minifloat(std::string_view name) {
  if (name == "e4m3") return MinifloatCodec{4, 3, 7, Specials::Nan};
  if (name == "e5m2") return MinifloatCodec{5, 2, 15, Specials::InfinityAndNan};
  if (name == "e3m2") return MinifloatCodec{3, 2, 3, Specials::None};
  if (name == "e2m3") return MinifloatCodec{2, 3, 1, Specials::None};
  if (name == "e2m1") return MinifloatCodec{2, 1, 1, Specials::None};
  return std::nullopt;
}

int usual_bias(int exponent_bits) {
  return (1 << (exponent_bits - 1)) - 1;
}

BiasRange bias_range(const MinifloatCodec& codec) {
  const int top =
      (1 << codec.exponent_bits) - 1 - (codec.specials == Specials::InfinityAndNan ? 1 : 0);
  // The largest number is finite and the kernels' magnet for subnormals too; the smallest normal
  // number is a normal float and the smallest step at least 2^-149.
  return {std::max(top - 127, -103 - codec.mantissa_bits),
          std::min(127, 150 - codec.mantissa_bits)};
}

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const std::string first = arguments.text("a name (e4m3, e5m2, e3m2, e2m3, e2m1) or a width");
  ScaledSpec spec;
  FormatFacts& facts = spec.facts;
  facts.family = "minifloat";
  MinifloatCodec codec;
  bool is_auto = false;
  if (const auto named = named_minifloat(first)) {
    codec = *named;
    facts.text = "minifloat:" + first;
    if (const auto bias = arguments.option("bias")) {
      if (*bias != "auto") fail("bias must be \"auto\" with a named format, got \"{}\"", *bias);
      is_auto = true;
      facts.text += ",bias=auto";
    }
  } else {
    if (first.starts_with('e'))
      throw unknown_name("minifloat", first, {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"});
    const auto width = static_cast<int>(parse_integer(first, "width", 3, 16));
    codec.exponent_bits =
        static_cast<int>(arguments.integer("exponent bits", 1, std::min(8, width - 2)));
    codec.mantissa_bits = width - 1 - codec.exponent_bits;
    const bool has_nan = arguments.flag("nan");
    const bool has_infinity = arguments.flag("inf");
    if (has_nan && has_infinity) fail("inf has NaN too, so nan and inf exclude each other");
    if (has_infinity && codec.exponent_bits < 2)
      fail("inf takes the largest exponent, so exponent bits must be at least 2, got 1");
    codec.specials = has_infinity ? Specials::InfinityAndNan
                     : has_nan    ? Specials::Nan
                                  : Specials::None;
    const BiasRange range = bias_range(codec);
    const std::string bias =
        arguments.option("bias").value_or(std::to_string(usual_bias(codec.exponent_bits)));
    is_auto = bias == "auto";
    codec.bias = is_auto ? usual_bias(codec.exponent_bits)
                         : static_cast<int>(parse_integer(bias, "bias", range.low, range.high));
    if (is_auto) codec.bias = std::clamp(codec.bias, range.low, range.high);
    facts.text = fmt::format("minifloat:{},{},bias={}", width, codec.exponent_bits,
                             is_auto ? "auto" : std::to_string(codec.bias));
    if (has_nan) facts.text += ",nan";
    if (has_infinity) facts.text += ",inf";
  }
  if (arguments.flag("overflow")) {
    if (codec.specials == Specials::None) fail("overflow needs a format with inf or nan");
    codec.overflows = true;
    facts.text += ",overflow";
  }
  if (is_auto) use_given_power_of_two(spec, arguments);
  arguments.finish();
  spec.codec = codec;
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "minifloat",
    .summary = "small floating point numbers with subnormals",
    .syntax =
        "minifloat:e4m3|e5m2|e3m2|e2m3|e2m1|WIDTH,EXPONENT[,nan|inf][,bias=B|auto][,overflow]",
    .parse = parse,
    .examples = {"minifloat:e4m3", "minifloat:e5m2", "minifloat:e3m2", "minifloat:e2m3",
                 "minifloat:e2m1", "minifloat:e5m2,overflow", "minifloat:e4m3,overflow",
                 "minifloat:8,4,bias=7", "minifloat:6,2,bias=3", "minifloat:16,5,bias=15,inf",
                 "minifloat:16,8,bias=127,inf,overflow", "minifloat:8,4,bias=auto",
                 "minifloat:e2m1,bias=auto,channel", "minifloat:3,1,bias=0"},
}};

}  // namespace
}  // namespace lathe::numerics
