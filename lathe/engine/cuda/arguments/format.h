#pragma once

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cuda/arguments/operand.h"
#include "lathe/numerics/kernels/kernel_table.h"

// Number formats: rounding to them, and the gradients of learned scales.
namespace lathe::engine::cuda {

/// Rounds rows of a matrix to a number format: a ScaledSpec (numerics/scaled_format.h) as plain
/// numbers, for the codec headers that both sides compile.
enum class Codec : std::int32_t { Integer, Minifloat, Levels };
enum class ScaleBy : std::int32_t {
  Constant,
  Given,
  GivenPowerOfTwo,
  SharedExponent,
  LargestMagnitude,
  Range
};
/// Whole numbers up to this size, and with a zero point of that size, are rounded as floats.
inline constexpr std::int64_t kMostWhole = std::int64_t{1} << 22;
struct QuantizeArgs {
  Codec codec = Codec::Integer;
  std::int32_t bits = 8;
  std::int64_t low = -127, high = 127, zero = 0;
  std::int32_t exponent_bits = 4, mantissa_bits = 3, bias = 7, specials = 0;
  bool overflows = false;
  float levels[16] = {}, thresholds[16] = {};
  ScaleBy rule = ScaleBy::Constant;
  float element_step = 1, divisor = 1;
  bool by_reciprocal = false;
  std::int32_t highest_exponent = 0, lowest_code = 0;
  std::uint32_t round_up = 0;
  const float* scales = nullptr;
  const float* zeros = nullptr;
  bool has_one_scale = false;  ///< for the whole tensor; else one for each block
  std::int64_t block = 0;      ///< columns that a scale covers
  /// Rows that a scale made of its own values covers: more than one for tiles, 0 for all rows, of
  /// which `parts` then holds kScaleParts.
  std::int64_t block_rows = 1;
  struct ScalePart* parts = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t columns = 0;
  Extent rows;
  std::int64_t first_block = 0;  ///< of a launch of several
};
/// Tensors whose rows are rounded one by one, all in one launch.
inline constexpr std::int64_t kQuantizeBlock = 8;  ///< blocks of values a block of threads has
struct QuantizeAllArgs {
  const QuantizeArgs* tensors = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;
};

/// What a scale is made of, of some of the values that it covers.
struct ScalePart {
  std::uint32_t largest = 0;          ///< bits without sign, NaN included
  float most = 0, low = 0, high = 0;  ///< of finite values: the largest magnitude, and the range
};
inline constexpr int kScaleParts = 256;

/// Rounds to plus or minus mean magnitudes (numerics/term_format.h and mase/terms.cpp).
struct TermArgs {
  enum class Kind : std::int32_t { Signs, Ternary, MasePositive, MaseTernary };
  Kind kind = Kind::Signs;
  std::int32_t terms = 1;       ///< Signs
  bool is_unit = false;         ///< Signs: they are plus and minus 1
  float threshold = 0;          ///< Ternary and MaseTernary: times the mean, what is 0
  std::int32_t num_phases = 0;  ///< means to be made one after another
  bool is_whole = false;        ///< one scale for all; else one for each row
  const float* x = nullptr;
  const float* mask = nullptr;  ///< null: all values count
  float* y = nullptr;
  std::int64_t columns = 0;
  Extent rows;
  std::int64_t num_chunks = 0;   ///< is_whole: of numerics::SumOrder::kChunk values
  std::byte* scratch = nullptr;  ///< is_whole: term_scratch(num_chunks) bytes
};
inline constexpr int kMostTermAlphas = 8;
inline constexpr std::int64_t kTermHeader = 128;
inline constexpr std::int64_t term_scratch(std::int64_t num_chunks) {
  return kTermHeader + 2 * num_chunks * 16;
}

/// MASE's quantizers of single values and of blocks.
struct MaseArgs {
  numerics::MaseTable table;
  bool has_blocks = false;
  std::int64_t block_rows = 1, block = 0;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t columns = 0;
  Extent rows;
};

/// dx and dscale of a quantize whose scale is given; `parts` holds a double for each row and block.
struct LearnedStepArgs {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* y = nullptr;
  const float* scales = nullptr;
  const float* zeros = nullptr;
  bool is_power_of_two = false, has_one_scale = false;
  double minimum = 0, maximum = 0;  ///< places that are not clipped
  double factor = 1;
  std::int64_t block = 0, columns = 0;
  float* dx = nullptr;
  float* dscale = nullptr;
  double* parts = nullptr;
  Extent rows;
  std::int64_t first_block = 0;  ///< of a launch of several
  bool is_gate = false;          ///< of a launch of several: no scale is learned, dx = dy or 0
  float low = 0, high = 0;       ///< where a gate lets dy pass
};
/// Tensors with a scale for each block of a row, or with none to be learned, all in one launch.
struct LearnedStepsArgs {
  const LearnedStepArgs* tensors = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;  ///< of kQuantizeBlock blocks of values each
};

/// y = from where x is kept, else 0: of each row the `count` smallest magnitudes of x go, ties by
/// index.
struct PruneValuesArgs {
  const float* x = nullptr;
  const float* from = nullptr;
  float* y = nullptr;
  std::int64_t count = 0, columns = 0;
  Extent rows;
};

}  // namespace lathe::engine::cuda
