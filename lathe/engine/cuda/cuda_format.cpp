#include "lathe/engine/cuda/cuda_format.h"

#include <algorithm>

#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {

std::int64_t block_columns(const FormatFacts& facts, std::int64_t columns) {
  const bool is_block = facts.granularity == Granularity::Block && facts.block_columns > 0;
  return is_block ? std::min(facts.block_columns, columns) : columns;
}

cuda::QuantizeArgs cuda_format(const numerics::ScaledSpec& spec, std::int64_t columns) {
  cuda::QuantizeArgs args;
  if (const auto* integer = std::get_if<numerics::IntegerCodec>(&spec.codec)) {
    args.codec = cuda::Codec::Integer;
    args.bits = integer->bits;
    args.low = integer->low;
    args.high = integer->high;
    args.zero = integer->zero;
  } else if (const auto* minifloat = std::get_if<numerics::MinifloatCodec>(&spec.codec)) {
    args.codec = cuda::Codec::Minifloat;
    args.bits = minifloat->bits();
    args.exponent_bits = minifloat->exponent_bits;
    args.mantissa_bits = minifloat->mantissa_bits;
    args.bias = minifloat->bias;
    args.specials = static_cast<std::int32_t>(minifloat->specials);
    args.overflows = minifloat->overflows;
  } else {
    const auto& levels = std::get<numerics::LevelCodec>(spec.codec);
    args.codec = cuda::Codec::Levels;
    args.bits = spec.facts.element_bits;
    std::copy_n(levels.levels, numerics::LevelCodec::kLevels, args.levels);
    std::copy_n(levels.thresholds, numerics::LevelCodec::kLevels - 1, args.thresholds);
  }
  static_assert(static_cast<int>(cuda::ScaleBy::Range) ==
                static_cast<int>(numerics::ScaleRule::Range));
  args.rule = static_cast<cuda::ScaleBy>(spec.rule);
  args.element_step = spec.element_step;
  args.divisor = spec.divisor;
  args.by_reciprocal = spec.by_reciprocal;
  args.highest_exponent = spec.exponent.highest_exponent;
  args.lowest_code = spec.exponent.lowest_code;
  args.round_up = spec.exponent.round_up;
  args.has_one_scale = spec.facts.granularity == Granularity::Tensor;
  args.block = block_columns(spec.facts, columns);
  if (spec.facts.scale_source == ScaleSource::Local)
    args.block_rows = args.has_one_scale ? 0 : spec.facts.block_rows;
  args.columns = columns;
  return args;
}

std::optional<cuda::PackedMatrix> cuda_packed_matrix(const NumberFormat& format, std::int64_t rows,
                                                     std::int64_t columns) {
  const numerics::ScaledSpec* const spec = numerics::find_scaled_spec(format);
  if (spec == nullptr) return std::nullopt;
  cuda::PackedMatrix matrix;
  matrix.format = cuda_format(*spec, columns);
  matrix.local_bytes =
      spec->facts.scale_source == ScaleSource::Local ? spec->facts.scale_bits / 8 : 0;
  matrix.row_bytes = format.code_bytes(columns);
  matrix.block_rows = spec->facts.block_rows;
  matrix.rows = rows;
  return matrix;
}

std::optional<CudaPacked> cuda_packed(const Graph& graph, NodeId id, std::size_t first) {
  const std::shared_ptr<const NumberFormat> format = ops::format_of(graph.attribute(id));
  const Type& codes = graph.type(graph.input(id, first));
  const std::int64_t columns = graph.attribute(id).integer("columns");
  if (!codes.num_elements().is_constant()) return std::nullopt;
  const std::optional<cuda::PackedMatrix> matrix = cuda_packed_matrix(
      *format, codes.num_elements().constant() / format->code_bytes(columns), columns);
  if (!matrix) return std::nullopt;
  return CudaPacked{*matrix, first};
}

cuda::PackedMatrix CudaPacked::of(const CudaCall& call) const {
  cuda::PackedMatrix result = matrix;
  const auto bytes = [&](std::size_t operand) {
    return reinterpret_cast<const std::uint8_t*>(call.input(operand));
  };
  result.codes = bytes(first);
  result.local = bytes(first + 1);
  result.format.scales = call.input(first + 2);
  result.format.zeros = call.input(first + 3);
  return result;
}

std::optional<cuda::PackedCode> packed_code(const cuda::PackedMatrix& weight) {
  const cuda::QuantizeArgs& format = weight.format;
  if (weight.block_rows != 1 || format.rule == cuda::ScaleBy::Range) return std::nullopt;
  const bool is_signed = format.low < 0 && format.zero == 0;
  std::optional<cuda::PackedCode> code;
  if (format.codec == cuda::Codec::Integer) {
    if (format.bits == 8 && is_signed) code = cuda::PackedCode::Int8;
    if (format.bits == 4 && is_signed) code = cuda::PackedCode::Int4;
    if (format.bits == 4 && format.low == 0) code = cuda::PackedCode::Unsigned4;
  } else if (format.codec == cuda::Codec::Minifloat) {
    const auto is = [&](int exponent, int mantissa, int bias, numerics::Specials specials) {
      return format.exponent_bits == exponent && format.mantissa_bits == mantissa &&
             format.bias == bias && format.specials == static_cast<int>(specials);
    };
    if (is(4, 3, 7, numerics::Specials::Nan)) code = cuda::PackedCode::E4m3;
    if (is(5, 2, 15, numerics::Specials::InfinityAndNan)) code = cuda::PackedCode::E5m2;
    if (is(2, 1, 1, numerics::Specials::None)) code = cuda::PackedCode::E2m1;
  }
  if (!code) return std::nullopt;
  // Four lanes read 64 bytes of a row. What a warp sums at once are 32 inputs, or 16 bytes, which
  // must share a scale; only MX has groups of 16, and minifloats are MX alone.
  const std::int64_t chunk = 64 * 8 / format.bits, block = format.block;
  const bool is_mx = format.rule == cuda::ScaleBy::SharedExponent;
  const bool fits = block == format.columns || (block >= 32 && (block & (block - 1)) == 0) ||
                    (is_mx && code == cuda::PackedCode::Int8 && block == 16);
  if (format.codec == cuda::Codec::Minifloat && !is_mx) return std::nullopt;
  if (format.columns % chunk != 0 || !fits) return std::nullopt;
  // The scales of 32 outputs and their zero points lie in shared memory.
  constexpr std::int64_t kMostGroups = 600;
  const std::int64_t groups = (format.columns + block - 1) / block;
  if (groups * (code == cuda::PackedCode::Unsigned4 ? 2 : 1) > kMostGroups) return std::nullopt;
  return code;
}

}  // namespace lathe::engine
