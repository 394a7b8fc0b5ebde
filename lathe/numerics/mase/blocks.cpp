// Twins of MASE's quantizers whose blocks share an exponent.
#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/mase/quantizers.h"
#include "lathe/numerics/mase/simulated_format.h"

namespace lathe::numerics {

namespace {

SimulatedSpec block_spec(std::string family, std::string text, int bits,
                         FormatArguments::Tile tile) {
  SimulatedSpec spec;
  FormatFacts& facts = spec.facts;
  facts.text = fmt::format("{}:{},block={}x{}", family, text, tile.rows, tile.columns);
  facts.family = std::move(family);
  facts.element_bits = bits;
  facts.scale_source = ScaleSource::Local;
  facts.granularity = Granularity::Block;
  facts.block_rows = tile.rows;
  facts.block_columns = tile.columns;
  facts.scale_bits = 8;
  spec.needs_largest = true;
  return spec;
}

std::shared_ptr<const NumberFormat> make_block_format(SimulatedSpec spec, const MaseTable& table) {
  use_blocks(spec, table);
  spec.quantize = [table](const SimulatedBlock& block) {
    with_mase_block(table, block.largest, [&](const auto& quantizer) {
      for (std::int64_t r = 0; r < block.rows; ++r)
        for (std::int64_t c = 0; c < block.columns; ++c)
          block.y[r * block.stride + c] = quantizer(block.x[r * block.stride + c]);
    });
  };
  // Scales whose steps are subnormal numbers are left to the definition.
  if (table.kind == MaseTable::Kind::BlockFp && table.highest < table.mantissa_bits - 126)
    spec.quantize_fast = nullptr;
  return make_simulated_format(std::move(spec));
}

std::shared_ptr<const NumberFormat> parse_block_fp(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 24));
  const auto exponent_bits = static_cast<int>(arguments.integer("exponent bits", 1, 8));
  const int half = 1 << (exponent_bits - 1);
  const auto bias = static_cast<int>(
      arguments.integer_option("bias", 2 * half - 1 - 128, 127).value_or(half - 1));
  const FormatArguments::Tile tile = arguments.tile_option("block", {1, 16});
  arguments.finish();
  SimulatedSpec spec = block_spec(
      "mase.block_fp", fmt::format("{},{},bias={}", width, exponent_bits, bias), width, tile);
  spec.facts.scale_bits = exponent_bits;
  spec.facts.maximum = 1 - power_of_two(1 - width);
  spec.facts.minimum = -spec.facts.maximum;
  spec.facts.smallest_step = power_of_two(1 - width);
  return make_block_format(std::move(spec), {.kind = MaseTable::Kind::BlockFp,
                                             .mantissa_bits = width - 1,
                                             .lowest = -bias,
                                             .highest = std::min(127, 2 * half - 1 - bias)});
}

std::shared_ptr<const NumberFormat> parse_block_minifloat(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 3, 16));
  const auto exponent_bits =
      static_cast<int>(arguments.integer("exponent bits", 1, std::min(7, width - 2)));
  const auto bias_bits = static_cast<int>(arguments.integer_option("bias_width", 1, 8).value_or(8));
  const FormatArguments::Tile tile = arguments.tile_option("block", {1, 16});
  arguments.finish();
  SimulatedSpec spec =
      block_spec("mase.block_minifloat",
                 fmt::format("{},{},bias_width={}", width, exponent_bits, bias_bits), width, tile);
  spec.facts.scale_bits = bias_bits;
  const int mantissa_bits = width - exponent_bits - 1;
  const int largest_code = (1 << exponent_bits) - 1;
  spec.facts.maximum = std::ldexp(2 - std::ldexp(1.0, -mantissa_bits), largest_code);
  spec.facts.minimum = -spec.facts.maximum;
  spec.facts.smallest_step = power_of_two(1 - mantissa_bits);
  return make_block_format(std::move(spec), {.kind = MaseTable::Kind::BlockMinifloat,
                                             .mantissa_bits = mantissa_bits,
                                             .highest = largest_code,
                                             .largest_bias = std::min(126, (1 << bias_bits) - 1)});
}

std::shared_ptr<const NumberFormat> parse_block_log(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 8));
  const auto bias_bits = static_cast<int>(arguments.integer_option("bias_width", 1, 8).value_or(8));
  const FormatArguments::Tile tile = arguments.tile_option("block", {1, 16});
  arguments.finish();
  SimulatedSpec spec =
      block_spec("mase.block_log", fmt::format("{},bias_width={}", width, bias_bits), width, tile);
  spec.facts.scale_bits = bias_bits;
  const int largest_code = (1 << (width - 1)) - 1;
  spec.facts.maximum = power_of_two(largest_code);
  spec.facts.minimum = -spec.facts.maximum;
  spec.facts.smallest_step = 1;
  return make_block_format(std::move(spec), {.kind = MaseTable::Kind::BlockLog,
                                             .highest = largest_code,
                                             .largest_bias = (1 << bias_bits) - 1});
}

std::shared_ptr<const NumberFormat> parse_mxint(std::string_view text) {
  FormatArguments arguments(text);
  const auto width = static_cast<int>(arguments.integer("width", 2, 8));
  const std::int64_t columns = arguments.block_option(32);
  arguments.finish();
  SimulatedSpec spec = block_spec("mase.mxint", std::to_string(width), width, {1, columns});
  spec.facts.text = fmt::format("mase.mxint:{},block={}", width, columns);
  const float half = power_of_two(width - 1);
  spec.facts.maximum = (half - 1) / half;
  spec.facts.minimum = -1;
  spec.facts.smallest_step = 1 / half;
  return make_block_format(std::move(spec),
                           {.kind = MaseTable::Kind::Mxint, .mantissa_bits = width - 1});
}

const Register registrations[] = {
    Register{FormatFamily{
        .name = "mase.block_fp",
        .summary = "MASE's block floating point, value for value",
        .syntax = "mase.block_fp:WIDTH,EXPONENT[,bias=B][,block=ROWSxCOLUMNS]",
        .parse = parse_block_fp,
        .examples = {"mase.block_fp:8,8,bias=127,block=1x16", "mase.block_fp:8,8,block=4x16"}}},
    Register{FormatFamily{
        .name = "mase.block_minifloat",
        .summary = "MASE's minifloats with a shared bias, value for value",
        .syntax = "mase.block_minifloat:WIDTH,EXPONENT[,bias_width=N][,block=ROWSxCOLUMNS]",
        .parse = parse_block_minifloat,
        .examples = {"mase.block_minifloat:8,4,bias_width=8,block=1x16"}}},
    Register{FormatFamily{.name = "mase.block_log",
                          .summary = "MASE's powers of two with a shared bias, value for value",
                          .syntax = "mase.block_log:WIDTH[,bias_width=N][,block=ROWSxCOLUMNS]",
                          .parse = parse_block_log,
                          .examples = {"mase.block_log:8,bias_width=8,block=1x16"}}},
    Register{FormatFamily{.name = "mase.mxint",
                          .summary = "MASE's MX integers, value for value",
                          .syntax = "mase.mxint:WIDTH[,block=32]",
                          .parse = parse_mxint,
                          .examples = {"mase.mxint:8,block=32"}}},
};

}  // namespace
}  // namespace lathe::numerics
