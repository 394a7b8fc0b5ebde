#pragma once

#include <cstdint>

#include "lathe/numerics/codecs/sum_order.h"

namespace lathe::numerics {

// What the vector kernels of one instruction set offer. Plain data and function pointers only: a
// kernel file includes nothing inline that other files share (tests/instruction_sets.cmake). Every
// kernel rounds to nearest even and keeps NaN; every instruction set gives the same bits.

/// The numbers an element can be, prepared for a kernel.
struct ElementTable {
  enum class Kind : std::int32_t { Integer, WideInteger, Minifloat, WideMinifloat, Levels };
  Kind kind = Kind::Integer;
  // Integer: multiples of a power of two between two ends, and a magnet: a number so large that
  // adding it leaves a float's last bit worth one step. WideInteger: whole numbers, further apart
  // than a magnet can serve.
  float low = 0, high = 0, magnet = 0;
  // Minifloat: the ends as low and high, the smallest normal number as bits, and what is added to a
  // number's exponent field to get the magnet of its binade, which saves most of what follows.
  std::int32_t smallest_normal = 0, magnet_offset = 0;
  // WideMinifloat: exponents beyond any magnet, or numbers beyond the ends that become infinity or
  // NaN. Mantissa bits cut from a float's, a magnet for the subnormal numbers, the largest number
  // and what is beyond it, as bits.
  std::int32_t cut_bits = 0;
  float subnormal_magnet = 0;
  std::int32_t largest = 0, beyond = 0;
  // Levels: sixteen numbers and the fifteen thresholds between them, then one unused.
  const float* levels = nullptr;
  const float* thresholds = nullptr;
};

/// SharedExponent (codecs/shared_exponent.h) for a kernel.
struct ExponentTable {
  std::int32_t highest_exponent = 0;
  std::int32_t round_up = 0;
  std::int32_t lowest_code = 0;
};

/// Values that one scale covers.
struct RunArgs {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t count = 0;
  float scale = 1;
  /// Multiply by this to get to the elements' units; 0: divide by `scale`.
  float inverse = 1;
  /// Written past the caches: for outputs that no cache holds.
  bool streams = false;
};

/// Rows of blocks, each with the scale its own values make.
struct BlockArgs {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t block_rows = 1, block = 0;
  bool streams = false;
};

/// Scales that somebody gave, one a block and row after row.
struct GivenScales {
  const float* scales = nullptr;
  /// Whole numbers added to an integer element's code, so its ends move down; or nullptr.
  const float* zeros = nullptr;
  /// The scales are powers of two, so that 1 / scale is exact and a product does for a quotient.
  bool is_power_of_two = false;
};

/// A row of whole numbers of 8 bits whose blocks have scales.
struct DecodeArgs {
  const std::int8_t* numbers = nullptr;
  const float* scales = nullptr;  ///< one a block
  std::int64_t columns = 0, block = 0;
  float* y = nullptr;
  bool streams = false;
};

/// Whole numbers of 8 bits whose blocks have powers of two as scales, the E8M0 of OCP MX, to become
/// floats or, exactly as well, bfloat16.
struct UnpackArgs {
  const std::int8_t* numbers = nullptr;
  const std::uint8_t* codes = nullptr;  ///< one a block: 2^(code - 127), or NaN for 255
  std::int64_t count = 0, block = 0;
  std::int32_t step_exponent = 0;  ///< a number is worth 2^step_exponent at scale 1; not above 0
  float* floats = nullptr;         ///< or null
  std::uint16_t* bf16 = nullptr;   ///< or null
  bool streams = false;
};

/// One of MASE's quantizers (mase/quantizers.h) for a kernel.
struct MaseTable {
  enum class Kind : std::int32_t {
    Integer,
    IntegerFloor,
    MinifloatDenorm,
    MinifloatIeee,
    Log,
    Residual,
    Positive,
    BlockFp,
    BlockMinifloat,
    BlockLog,
    Mxint
  };
  Kind kind = Kind::Integer;
  // Integer, IntegerFloor: the ends in steps. Positive: the number for what is positive as high,
  // for the rest as low.
  float steps_per_one = 1, low = 0, high = 0;
  // Minifloats and BlockFp: bits after the point; Mxint: width - 1.
  std::int32_t mantissa_bits = 0;
  // Exponents. BlockFp: lowest and highest of a block, highest at least mantissa_bits - 126.
  // BlockMinifloat, BlockLog: highest without bias.
  std::int32_t lowest = 0, highest = 0;
  std::int32_t largest_bias = 0;
  float offset = 0;  // Log: what is added against logarithms of 0
  // Residual: one to three.
  float means[3] = {};
  std::int32_t num_means = 0;
};

struct MagnitudeSum {
  double sum = 0;
  std::int64_t count = 0;
};

struct Kernels {
  const char* isa;
  /// y = element(x in units of the scale) * scale.
  void (*round_run)(const ElementTable&, const RunArgs&);
  /// The same with a given scale for every block.
  void (*round_given_blocks)(const ElementTable&, const GivenScales&, const BlockArgs&);
  /// The same with powers of two made by each block.
  void (*round_blocks)(const ElementTable&, const ExponentTable&, const BlockArgs&);
  /// The same with each block's largest finite magnitude, divided by `divisor`, as its scale. With
  /// `by_reciprocal` values are multiplied by the rounded 1 / scale, else divided by the scale.
  void (*round_scaled_blocks)(const ElementTable&, float divisor, bool by_reciprocal,
                              const BlockArgs&);
  /// y = number * scale.
  void (*decode_bytes)(const DecodeArgs&);
  /// The same with scales as they are stored.
  void (*unpack_bytes)(const UnpackArgs&);
  /// The largest bit pattern without sign, so that any NaN or infinity shows.
  std::uint32_t (*largest_magnitude)(const float* x, std::int64_t count);
  /// The largest finite magnitude; 0 where there is none.
  float (*largest_finite)(const float* x, std::int64_t count);
  /// Widens [*low, *high] to hold every finite value.
  void (*finite_range)(const float* x, std::int64_t count, float* low, float* high);
  /// The finite magnitudes above `above`: their sum and number. The order of additions is fixed
  /// (codecs/sum_order.h), so that every path has the same sum.
  MagnitudeSum (*magnitudes_above)(const float* x, std::int64_t count, float above);
  /// The same of all numbers, infinities included, each added in double.
  MagnitudeSum (*numbers_above)(const float* x, std::int64_t count, float above);
  /// The sum of the finite magnitudes of x - sum of the terms sign * alphas[0 .. terms).
  double (*residual_magnitudes)(const float* x, std::int64_t count, const float* alphas, int terms);
  /// y = sum of sign(residual) * alphas[i], where sign(0) = 1.
  void (*sign_terms)(const float* alphas, int terms, const RunArgs&);
  /// y = sign(x) * alpha where |x| > delta, else 0.
  void (*ternary)(float delta, float alpha, const RunArgs&);
  /// MASE's quantizers for single values; scales of the run are not used.
  void (*mase_run)(const MaseTable&, const RunArgs&);
  /// MASE's quantizers for blocks.
  void (*mase_blocks)(const MaseTable&, const BlockArgs&);
};

}  // namespace lathe::numerics
