// Block floating point: whole numbers of `width` bits that share the exponent of their block. The
// exponent is the least with which the block's largest number is not clipped, so a power of two at
// the top is exact and a number that rounds up to one takes the next exponent.
#include "lathe/core/number_format.h"
#include "lathe/numerics/block_text.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 16));
  const auto [rows, columns] = arguments.tile_option("block", {1, 16});
  arguments.finish();

  ScaledSpec spec;
  const std::int64_t high = (std::int64_t{1} << (width - 1)) - 1;
  spec.codec = IntegerCodec{width, -high, high, 0};
  spec.element_step = power_of_two(2 - width);
  // A magnitude is one bit before the binary point and width - 2 after it.
  use_shared_exponent(spec, {0, even_rule(width - 2), 0}, rows, columns);
  spec.facts.family = "bfp";
  spec.facts.text = fmt::format("bfp:{},{}", width, block_text(rows, columns));
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "bfp",
    .summary = "block floating point: integers with the exponent of their block",
    .syntax = "bfp:WIDTH[,block=16|ROWSxCOLUMNS]",
    .parse = parse,
    .examples = {"bfp:8,block=16", "bfp:4,block=32", "bfp:16,block=16", "bfp:2,block=8",
                 "bfp:8,block=4x16"},
}};

}  // namespace
}  // namespace lathe::numerics
