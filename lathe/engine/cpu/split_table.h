#pragma once

// Products of floats by an instruction that multiplies bfloat16 numbers: their arguments and the
// table of functions that one way to multiply fills in. Plain structs only: see kernel_table.h.

#include <cstdint>

#include "lathe/engine/cpu/code_table.h"

namespace lathe::engine {

/// y[rows, n] = activation(x[rows, k] . B[k, n] + bias[n]) + residual[rows, n].
///
/// A float of 24 bits is the sum of three bfloat16 numbers of 8, a = a1 + a2 + a3, exactly. Of the
/// nine products of two such sums the six largest are added up: a1 b1, a1 b2, a2 b1, a2 b2, a1 b3
/// and a3 b1. A part is at most 2^-8 of the one before, so the others are at most 2^-23 of the
/// product, as much as two roundings to float may change. Products are exact, and sums are float.
///
/// A row has the same bits whatever rows and columns it is computed with. A row with a number that
/// is not below kMostSplit, not finite for instance, is multiplied as floats, with the bits of
/// `Kernels::gemm`.
///
/// A weight that changes with every step of training is not packed: B is read where it lies. A
/// panel of its columns with a number that is too large is multiplied as floats like such a row.
struct SplitArgs {
  std::int64_t rows, n, k;  ///< k is a multiple of kSplitGrain where x_step is 1
  const float* x;           ///< whose element [r, p] is x[r * x_stride + p * x_step]
  std::int64_t x_stride;
  const float* packed;  ///< B as `pack` wrote it, or null
  const float* bias;    ///< or null
  Unary activation;
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  void* scratch;      ///< scratch_bytes(rows, n) on a cache line
  const void* parts;  ///< the rows as `split_rows` wrote them, or null: they are split here
  /// Where columns are, counted from these, that are wanted next, or 0: they are asked for.
  std::int64_t next_column;
  std::int64_t x_step = 1;  ///< with another one x_stride is 1, and so is b_stride_n
  /// B where it lies, if it is not packed: its element [p, j] is b[j * b_stride_n + p *
  /// b_stride_k], one of both 1.
  const float* b = nullptr;
  std::int64_t b_stride_n = 0, b_stride_k = 0;
  /// Whether y goes past the caches: nobody reads it soon. For sums alone, where x_step is not 1.
  bool streams_y = false;
};

inline constexpr std::int64_t kSplitGrain = 32;

/// Magnitudes of x and of B such that no sum of 2^16 products overflows. At the other end the
/// instruction takes parts and products below 2^-126 for 0, which changes a product of x and a
/// weight w by at most 2^-123 (1 + |x| + |w|).
inline constexpr float kMostSplit = 0x1p90f;
inline constexpr float kMostSplitWeight = 0x1p20f;
/// Both of a product of activations, the gradient of a weight: x_step is not 1.
inline constexpr float kMostSplitBoth = 0x1p55f;

/// One way to multiply.
struct SplitKernels {
  const char* name;
  ProductGrain (*grain)();
  /// Floats that `pack` writes for B[k, n]. Columns are packed in panels of grain().columns, so
  /// that those from a multiple of it on begin at `packed_size(column, k)`.
  std::int64_t (*packed_size)(std::int64_t n, std::int64_t k);
  /// Packs B whose element [p, j] is weight[j * k + p], all below kMostSplitWeight.
  void (*pack)(const float* weight, std::int64_t n, std::int64_t k, float* packed);
  std::int64_t (*scratch_bytes)(std::int64_t rows, std::int64_t n);
  void (*multiply)(const SplitArgs&);
  /// Bytes of the parts of so many rows.
  std::int64_t (*parts_bytes)(std::int64_t rows, std::int64_t k);
  /// Splits rows of x for blocks that read them all; `parts` is on a cache line.
  void (*split_rows)(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t k,
                     void* parts);
  /// The same product with a weight of whole numbers that is packed as CodeKernels of this
  /// processor want it, and whose scales are powers of two, below kMostSplitWeight / 128. Such
  /// numbers have one part, so that three products are all.
  ProductGrain (*widened_grain)();
  std::int64_t (*widened_scratch_bytes)(std::int64_t rows, std::int64_t n);
  void (*multiply_widened)(const WidenedArgs&);
};

}  // namespace lathe::engine
