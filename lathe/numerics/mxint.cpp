// OCP MX integers: blocks with an E8M0 scale 2^floor(log2 max), elements of `width` bits that are
// worth q / 2^(width-2). MXINT8 is the specification's; the other widths follow the same pattern.
// -2^(width-1) is left out, as the specification permits, so that the codes are symmetric.
#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 8));
  const std::int64_t block = arguments.block_option(32);
  arguments.finish();

  ScaledSpec spec;
  const std::int64_t high = (std::int64_t{1} << (width - 1)) - 1;
  spec.codec = IntegerCodec{width, -high, high, 0};
  spec.element_step = power_of_two(2 - width);
  use_shared_exponent(spec, {.highest_exponent = 0, .round_up = kFloorRule, .lowest_code = 0}, 1,
                      block);
  FormatFacts& facts = spec.facts;
  facts.family = "mxint";
  facts.text =
      block == 32 ? fmt::format("mxint:{}", width) : fmt::format("mxint:{},block={}", width, block);
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "mxint",
    .summary = "OCP MX integers: blocks with a power-of-two scale",
    .syntax = "mxint:WIDTH[,block=32]",
    .parse = parse,
    .examples = {"mxint:8", "mxint:4", "mxint:8,block=16", "mxint:2,block=128"},
}};

}  // namespace
}  // namespace lathe::numerics
