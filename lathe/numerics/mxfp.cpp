// OCP MX floating point: blocks with an E8M0 scale, elements in one of the five OCP formats.
//
// The specification's scale is 2^(floor(log2 max) - the elements' largest exponent), which clips
// maxima whose mantissa is beyond the largest element's. "rceil" takes the least scale that does
// not, "ceil" the next power of two, "even" the floor after rounding the maximum to the elements'
// mantissa. All are read from the maximum's bits.
#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/minifloat.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

std::uint32_t round_up_of(std::string_view rule, const MinifloatCodec& codec) {
  if (rule == "floor") return kFloorRule;
  if (rule == "ceil") return kCeilRule;
  if (rule == "even") return even_rule(codec.mantissa_bits);
  if (rule == "rceil")
    return reciprocal_ceil_rule(bits_of(codec.decode(codec.largest_code())) & 0x7fffff);
  throw unknown_name("scale", rule, {"floor", "ceil", "even", "rceil"});
}

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const std::string name = arguments.text("an element (e4m3, e5m2, e3m2, e2m3, e2m1)");
  const std::optional<MinifloatCodec> codec = named_minifloat(name);
  if (!codec) throw unknown_name("element", name, {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"});
  const std::int64_t block = arguments.block_option(32);
  const std::string rule = arguments.option("scale").value_or("floor");
  arguments.finish();

  ScaledSpec spec;
  spec.codec = *codec;
  use_shared_exponent(
      spec, {codec->highest_exponent(), round_up_of(rule, *codec), lowest_scale_code(*codec)}, 1,
      block);
  spec.facts.family = "mxfp";
  spec.facts.text = "mxfp:" + name;
  if (block != 32) spec.facts.text += fmt::format(",block={}", block);
  if (rule != "floor") spec.facts.text += ",scale=" + rule;
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "mxfp",
    .summary = "OCP MX floating point: blocks with a power-of-two scale",
    .syntax = "mxfp:e4m3|e5m2|e3m2|e2m3|e2m1[,block=32][,scale=floor|rceil|ceil|even]",
    .parse = parse,
    .examples = {"mxfp:e4m3", "mxfp:e5m2", "mxfp:e3m2", "mxfp:e2m3", "mxfp:e2m1",
                 "mxfp:e2m1,scale=rceil", "mxfp:e4m3,scale=ceil", "mxfp:e2m1,scale=even",
                 "mxfp:e2m1,block=16"},
}};

}  // namespace
}  // namespace lathe::numerics
