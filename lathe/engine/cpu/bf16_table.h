#pragma once

// Products of bfloat16 numbers with sums in float: their arguments and the table of functions that
// one way to multiply fills in. Plain structs only: see kernel_table.h.

#include <cstdint>

#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine {

/// y[rows, n] = activation(round(x[rows, k] . B[k, n] + bias[n])) + residual[rows, n], where x, B
/// and bias are rounded to bfloat16 (to nearest, ties to even), sums are float, and `round` is to
/// bfloat16 or not at all.
///
/// A result has the same bits in whatever block of rows and columns it is computed.
struct Bf16Args {
  std::int64_t rows, n, k;
  const float* x;  ///< element [r, p] is x[r * x_stride + p * x_step], and one of both is 1
  std::int64_t x_stride, x_step;
  const std::uint16_t* narrow_x = nullptr;     ///< as bfloat16 numbers instead
  const std::uint16_t* packed;                 ///< B as `pack` wrote it, or null: then it is `b`
  const std::uint16_t* next_packed = nullptr;  ///< where a block begins that is multiplied soon
  const float* b;                              ///< element [p, j] is b[j + p * b_stride]
  std::int64_t b_stride;
  const std::uint16_t* narrow_b = nullptr;
  const float* bias;  ///< or null
  bool is_rounded;
  Unary activation;
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  std::uint16_t* narrow_y = nullptr;  ///< y rounded to bfloat16 instead
  void* scratch;                      ///< scratch_bytes(rows, n) on a cache line
  /// Whether y may go past the caches: nobody reads it soon. For sums alone.
  bool streams_y = false;
};

/// AttentionArgs, of which operands and the result may lie as bfloat16 numbers: those that are set
/// here are instead of theirs, with the same strides.
struct Bf16AttentionArgs : AttentionArgs {
  const std::uint16_t* narrow_q = nullptr;
  const std::uint16_t* narrow_k = nullptr;
  const std::uint16_t* narrow_v = nullptr;
  std::uint16_t* narrow_out = nullptr;
};

/// One way to multiply. The ways agree on what is rounded and differ in how they add: the two
/// products of neighbours in k may be added to each other first, and those that are subnormal may
/// count as 0.
struct Bf16Kernels {
  const char* name;
  ProductGrain (*grain)();
  /// Whether rows of narrow_x are read where they lie, if k is a multiple of kRowGrain; else every
  /// block copies its own.
  bool reads_rows;
  static constexpr std::int64_t kRowGrain = 32;
  /// Numbers that `pack` writes for B[k, n]. Columns are packed in panels of grain().columns, so
  /// that those from a multiple of it on begin at `packed_size(column, k)`.
  std::int64_t (*packed_size)(std::int64_t n, std::int64_t k);
  /// Rounds and packs B whose element [p, j] is b[j * stride_n + p * stride_k], one of both 1.
  void (*pack)(const float* b, std::int64_t n, std::int64_t k, std::int64_t stride_n,
               std::int64_t stride_k, std::uint16_t* packed);
  std::int64_t (*scratch_bytes)(std::int64_t rows, std::int64_t n);
  void (*multiply)(const Bf16Args&);
  /// y[i] = x[i] rounded to bfloat16; y may be x.
  void (*round)(const float* x, std::int64_t count, float* y);
  /// The same as bfloat16 numbers.
  void (*narrow)(const float* x, std::int64_t count, std::uint16_t* y);
  /// As Kernels::attention, with operands, weights before their division and results rounded to
  /// bfloat16, and scratch of so many bytes on a cache line. Without log_sum_exp, dropout and
  /// rounding of weights to a format, and for d up to kMostHeadSize alone.
  std::int64_t (*attention_scratch_bytes)(std::int64_t lk, std::int64_t d);
  void (*attention)(const Bf16AttentionArgs&);
  std::int64_t (*attention_packed_bytes)(std::int64_t lk, std::int64_t d);
  void (*attention_pack)(const Bf16AttentionArgs&, void* packed);
  std::int64_t (*attention_tile)(std::int64_t lq, std::int64_t row);
  static constexpr std::int64_t kMostHeadSize = 1024;
};

}  // namespace lathe::engine
