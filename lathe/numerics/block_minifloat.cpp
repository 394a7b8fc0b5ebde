// Minifloats that share the bias of their block, chosen so that the largest exponent code is the
// exponent of the block's largest number: bias = 2^exponent_bits - 1 - floor(log2 max). All codes
// are numbers. The bias is stored as the block's scale.
#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/numerics/block_text.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/minifloat.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 3, 16));
  const auto exponent_bits =
      static_cast<int>(arguments.integer("exponent bits", 1, std::min(6, width - 2)));
  const auto [rows, columns] = arguments.tile_option("block", {1, 16});
  arguments.finish();

  const MinifloatCodec codec{exponent_bits, width - 1 - exponent_bits, usual_bias(exponent_bits),
                             Specials::None};
  ScaledSpec spec;
  spec.codec = codec;
  use_shared_exponent(spec, {codec.highest_exponent(), kFloorRule, lowest_scale_code(codec)}, rows,
                      columns);
  spec.facts.family = "block_minifloat";
  spec.facts.text =
      fmt::format("block_minifloat:{},{},{}", width, exponent_bits, block_text(rows, columns));
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "block_minifloat",
    .summary = "minifloats with the bias of their block",
    .syntax = "block_minifloat:WIDTH,EXPONENT[,block=16|ROWSxCOLUMNS]",
    .parse = parse,
    .examples = {"block_minifloat:8,4,block=16", "block_minifloat:4,2,block=32",
                 "block_minifloat:16,6,block=16", "block_minifloat:8,3,block=2x8"},
}};

}  // namespace
}  // namespace lathe::numerics
