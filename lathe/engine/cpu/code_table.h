#pragma once

// Products of whole numbers of 8 bits (ops/code_linear.cpp) and the rounding to them
// (ops/encode.cpp): their arguments and the table of functions that one way to multiply fills in.
// Plain structs only: see kernel_table.h.

#include <cstdint>

#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine {

/// Where the scale of an encoded row or block comes from.
enum class CodeScale {
  Given,             ///< one for all
  LargestMagnitude,  ///< of each block: the largest finite magnitude by `divisor`
  Range,             ///< of each block: the finite range, 0 included, by `divisor`; a zero point
  SharedExponent,    ///< of each block: a power of two
};

/// numbers[rows, columns], scales and zeros[rows, blocks] of x[rows, columns].
struct EncodeArgs {
  std::int64_t rows, columns;
  std::int64_t block;  ///< columns that share a scale
  const float* x;
  std::int8_t* numbers;
  float* scales;
  std::int32_t* zeros;
  CodeScale rule;
  float low, high;       ///< the ends of the numbers, before the zero point
  std::int32_t offset;   ///< taken off numbers and zeros
  float scale;           ///< Given
  float zero;            ///< Given: a whole number
  bool is_power_of_two;  ///< Given: values are multiplied by 1 / scale instead of divided
  float divisor;         ///< LargestMagnitude, Range
  float step;            ///< SharedExponent: a power of two, what a number is worth at scale 1
  std::int32_t highest_exponent, round_up, lowest_code;  ///< SharedExponent
};

/// How the depth of a product is cut into blocks that are summed in whole numbers.
struct CodeCut {
  std::int64_t k, blocks, width;
  bool x_has_blocks, weight_has_blocks;
  /// The weight's numbers are -8 to 7 and blocks are whole eights: two may share a byte.
  bool has_nibbles;
};

/// y[rows, n] = activation(product + bias) + residual, the product as code_linear defines it. A
/// result has the same bits in whatever block of rows and columns it is computed.
struct CodeArgs {
  std::int64_t rows, n;
  CodeCut cut;
  const std::int8_t* x;
  std::int64_t x_stride;
  const float* x_scales;              ///< cut.blocks a row, or one
  const std::int32_t* x_zeros;        ///< laid out like them; null: all are 0
  const std::int8_t* packed;          ///< as `pack` wrote it
  const float* weight_scales;         ///< panels of cut.blocks lines, or one, of a panel's columns
  const std::uint8_t* weight_powers;  ///< instead of scales of blocks: 2^(code - 127); or null
  const std::int32_t* sums;           ///< of a weight's numbers, as scales lie; only with x_zeros
  const float* bias;                  ///< or null
  Unary activation;
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  void* scratch;  ///< scratch_bytes(rows, cut) on a cache line
};

/// The same of windows, row by row of a result's lines, each of `pixels` windows. They are read
/// where they lie: one is `lines` lines of `length` numbers in a row, a multiple of kWindowStep,
/// and k counts them in that order.
struct CodeWindowArgs {
  CodeArgs product;  ///< x, x_stride and scratch are not read; cut.blocks is 1, and zeros are null
  std::int64_t pixels;
  const std::int8_t* const* x;  ///< for each line of results, where the window of its first begins
  std::int64_t x_step;          ///< from the window of a pixel to the next one's
  std::int64_t lines, line_step, length;
  const std::int32_t* sums;  ///< of the numbers under each window
};
/// Numbers that one instruction multiplies, and where two share a byte twice as many.
inline constexpr std::int64_t kWindowStep = 4;

/// Rows of a product up to which its weight is read straight into registers.
inline constexpr std::int64_t kFewWidenedRows = 4;

/// y[rows, n] = activation(x[rows, k] . B[k, n] + bias[n]) + residual[rows, n] in floats, where B
/// is a weight of whole numbers times their scales. The bits are those of `gemm` with the decoded
/// B, except where the whole product has few rows and its weight lies by fours: sums are rounded
/// less often then. A result has the same bits in whatever block it is computed.
struct WidenedArgs {
  std::int64_t rows, n, k;
  std::int64_t width;  ///< columns of x that share a scale of the weight
  const float* x;
  std::int64_t x_stride;
  /// Panels of grain().columns, or where numbers lie by fours of widened_columns, row after row of
  /// B.
  const std::int8_t* numbers;
  /// Numbers are -8 to 7, and two rows share their bytes: a number of the first, plus 8, has the
  /// lower half. Depth and width are even then.
  bool has_nibbles;
  /// 1, or 4: a column's numbers of four rows lie side by side, plus 128 where they are no nibbles,
  /// and it is two such fours of rows that share their bytes. Depth and width are whole fours then,
  /// or eights.
  std::int64_t step;
  bool is_few;          ///< the product that this may be a block of has kFewWidenedRows at most
  const float* scales;  ///< panels of a line for each block
  const std::uint16_t* shorts;  ///< instead of scales: bfloat16 numbers; or null
  const std::uint8_t* powers;   ///< instead of scales: 2^(code - 127); or null
  const float* bias;            ///< or null
  Unary activation;
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  void* scratch;  ///< widened_scratch_bytes(rows, n, k, width) on a cache line
};

/// Attention of one head over one sequence, as ops/code_attention.cpp defines it: as AttentionArgs,
/// of whole numbers whose rows have a scale each.
struct CodeAttentionArgs {
  std::int64_t lq, lk, d;
  std::int64_t q_begin, q_end;  ///< the queries that are computed
  const std::int8_t* q;
  const std::int8_t* k;
  const std::int8_t* v;
  const float* q_scales;
  const float* k_scales;
  const float* v_scales;
  float* out;
  std::int64_t q_stride, k_stride, out_stride;  ///< k_stride is that of v, too
  float scale;
  bool causal;
  const std::uint8_t* keep;  ///< lk entries, or null to keep all
  void* scratch;             ///< attention_scratch_bytes(lk, d) on a cache line
  const void* packed;        ///< as AttentionArgs::packed
};

/// One way to multiply. All give the same bits, attention apart: its scores have the same bits, its
/// weights and results are floats.
struct CodeKernels {
  const char* name;
  ProductGrain (*grain)();
  void (*encode)(const EncodeArgs&);
  /// Bytes that `pack` writes for n columns of depth k. Columns are packed in panels of
  /// grain().columns, so that those from a multiple of it on begin at `packed_size(column, cut)`.
  std::int64_t (*packed_size)(std::int64_t n, const CodeCut& cut);
  /// Packs a weight whose column j is numbers[j * k ...].
  void (*pack)(const std::int8_t* numbers, std::int64_t n, const CodeCut& cut, std::int8_t* packed);
  std::int64_t (*scratch_bytes)(std::int64_t rows, const CodeCut& cut);
  void (*multiply)(const CodeArgs&);
  /// Null where windows have to be gathered into rows for `multiply`.
  void (*multiply_windows)(const CodeWindowArgs&);
  /// sums[pixels] of x[pixels, channels]; with multiply_windows.
  void (*sum_pixels)(const std::int8_t* x, std::int64_t pixels, std::int64_t channels,
                     std::int32_t* sums);
  /// How weights should lie for multiply_widened, and where they lie by fours the columns of their
  /// panels.
  std::int64_t widened_step, widened_columns;
  std::int64_t (*widened_scratch_bytes)(std::int64_t rows, std::int64_t n, std::int64_t k,
                                        std::int64_t width);
  void (*multiply_widened)(const WidenedArgs&);
  std::int64_t (*attention_scratch_bytes)(std::int64_t lk, std::int64_t d);
  void (*attention)(const CodeAttentionArgs&);
  /// As those of Kernels.
  std::int64_t (*attention_packed_bytes)(std::int64_t lk, std::int64_t d);
  void (*attention_pack)(const CodeAttentionArgs&, void* packed);
  std::int64_t (*attention_tile)(std::int64_t lq, std::int64_t row);
};

}  // namespace lathe::engine
