// Zero and powers of two below the largest of their block, whose exponent they share: that of the
// block's largest number rounded to a power of two.
#include "lathe/core/number_format.h"
#include "lathe/numerics/block_text.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 8));
  const auto [rows, columns] = arguments.tile_option("block", {1, 16});
  arguments.finish();

  const int exponent_bits = width - 1;
  // At scale 1 the largest number is 1.
  const MinifloatCodec codec{exponent_bits, 0, (1 << exponent_bits) - 1, Specials::None};
  ScaledSpec spec;
  spec.codec = codec;
  use_shared_exponent(spec, {0, even_rule(0), lowest_scale_code(codec)}, rows, columns);
  spec.facts.family = "block_log";
  spec.facts.text = fmt::format("block_log:{},{}", width, block_text(rows, columns));
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "block_log",
    .summary = "zero and powers of two with the exponent of their block",
    .syntax = "block_log:WIDTH[,block=16|ROWSxCOLUMNS]",
    .parse = parse,
    .examples = {"block_log:8,block=16", "block_log:4,block=32", "block_log:2,block=16"},
}};

}  // namespace
}  // namespace lathe::numerics
