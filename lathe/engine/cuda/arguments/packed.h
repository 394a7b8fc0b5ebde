#pragma once

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cuda/arguments/elementwise.h"
#include "lathe/engine/cuda/arguments/format.h"

// Weights that lie packed: decoded, or multiplied as they are.
namespace lathe::engine::cuda {

/// Numbers that lie packed: rows of codes, each a little-endian bit stream, and their scales.
struct PackedMatrix {
  /// The format; of its operands only `scales` and `zeros`, which were handed in, are read, and
  /// `columns` and `block` as there.
  QuantizeArgs format;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* local = nullptr;  ///< scales that the format made itself
  std::int32_t local_bytes = 0;         ///< of each of them
  std::int64_t row_bytes = 0;           ///< of a row's codes
  std::int64_t block_rows = 1;          ///< rows that a scale covers
  std::int64_t rows = 0;
};

/// The scales of a weight: where they lie and how their bits become floats.
struct PackedScales {
  const void* from = nullptr;  ///< null: all are 1
  const float* zeros = nullptr;
  int of_output = 1;    ///< scales of a row
  int group_bits = 31;  ///< inputs of a scale: 2 to this; 31 for a row with one scale
  bool are_exponents = false, is_one = false, to_power_of_two = false;
  float step = 1;
};

inline PackedScales scales_of(const PackedMatrix& weight) {
  const QuantizeArgs& format = weight.format;
  PackedScales result;
  result.step = format.element_step;
  result.is_one = format.has_one_scale;
  result.are_exponents = format.rule == ScaleBy::SharedExponent;
  result.to_power_of_two = format.rule == ScaleBy::GivenPowerOfTwo;
  if (result.are_exponents || format.rule == ScaleBy::LargestMagnitude)
    result.from = weight.local;
  else if (format.rule == ScaleBy::Given || format.rule == ScaleBy::GivenPowerOfTwo)
    result.from = format.scales;
  if (result.from != nullptr) result.zeros = format.zeros;
  if (format.block < format.columns && !result.is_one) {
    result.of_output = static_cast<int>((format.columns + format.block - 1) / format.block);
    for (result.group_bits = 0; std::int64_t{1} << result.group_bits < format.block;)
      ++result.group_bits;
  }
  return result;
}

/// y = the numbers of all rows; with indices those of rows[indices[i]].
struct DecodeArgs {
  PackedMatrix packed;
  Integers indices;
  Number to = Number::F32;  ///< or BF16, rounded to nearest even
  void* y = nullptr;
  Extent rows;
  Fault fault;
};

/// MXINT8 to bfloat16 or float by tiles, one for each block of `threads` threads, which copy runs
/// of codes in turn. A tile of 0: as is fastest.
struct TileShape {
  std::int32_t rows = 0, columns = 0, threads = 0;
};
/// The tiles that there are, the fastest first.
inline constexpr TileShape kTileShapes[] = {
    {8, 512, 256}, {1, 4096, 256}, {4, 1024, 256}, {8, 512, 128}, {8, 512, 512}, {8, 128, 128},
    {16, 64, 128}, {32, 32, 128},  {32, 128, 256}, {64, 64, 256}, {64, 16, 128}, {128, 128, 1024}};
/// Codes of a run: 16 bytes of results.
inline constexpr std::int32_t run_of_tile(Number to) {
  return to == Number::F32 ? 4 : 8;
}
struct DequantizeArgs {
  TileShape tile;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* exponents = nullptr;
  Number to = Number::BF16;
  void* y = nullptr;
  std::int64_t rows = 0, columns = 0;  ///< columns: a multiple of the group
  std::int32_t group = 32;             ///< a power of two, at least a run
};

/// Codes that become the operand of a tensor core as they are, or as bfloat16.
enum class PackedCode : std::int32_t { Int8, Int4, Unsigned4, E4m3, E5m2, E2m1 };

/// y[rows, n] = map(x[rows, k] . weight^T + bias) + residual, the weight read as it is packed.
///
/// Codes times the activations' terms are exact in the tensor cores' products, scales are applied
/// to the sums of a group. With `encodes`, activations become MXINT8 blocks of the weight's group
/// and products and sums of a group are whole numbers. The precision is that of x and of the
/// product's result: the weight is always as exact as it is packed.
struct PackedLinearArgs {
  PackedCode code = PackedCode::Int8;
  PackedMatrix weight;
  std::int64_t n = 0, k = 0;
  const float* x = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  Map map = Map::Identity;
  bool encodes = false;
  /// What is launched before this does not write the weight.
  bool may_begin_early = true;
  Precision precision = Precision::Float32;
  float* y = nullptr;
  std::byte* scratch = nullptr;  ///< packed_linear_scratch bytes
  Extent rows;
};
/// Up to so many rows a product reads packed weights once; more rows are worth decoding them.
inline constexpr std::int64_t kMostPackedRows = 16;
/// Terms of bfloat16 whose sum an activation is: 24 bits are three times 8.
inline constexpr std::int64_t num_terms(Precision precision) {
  return precision == Precision::Float32 ? 3 : precision == Precision::Tf32 ? 2 : 1;
}
inline constexpr std::int64_t packed_linear_scratch(const PackedLinearArgs& args) {
  // Codes and, for every 16 of them, a scale; rows by 32.
  if (args.encodes) return (args.rows.capacity + 31) * args.k * 5 / 4;
  // Columns in tiles of 16, or of 24 for three terms: at most 23 more than there are.
  return (args.rows.capacity * num_terms(args.precision) + 24) * args.k * 2;
}

}  // namespace lathe::engine::cuda
