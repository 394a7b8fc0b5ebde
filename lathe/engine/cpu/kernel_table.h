#pragma once

// The arguments of the CPU kernels and the table that one instruction set fills in. Plain structs
// only: the files compiled for AVX2 and AVX-512 include this header, and an inline function of the
// standard library compiled there could be the copy the linker keeps for every machine.

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/channel_norm_args.h"
#include "lathe/engine/cpu/convolution_args.h"
#include "lathe/engine/cpu/training_args.h"
#include "lathe/engine/cpu/winograd_args.h"

namespace lathe::engine {

/// Element-wise functions of one argument. The first eight are also the activations of `gemm`.
enum class Unary {
  None,
  Relu,
  GeluErf,   ///< x/2 (1 + erf(x/sqrt 2))
  GeluTanh,  ///< the tanh approximation, GPT-2's
  Tanh,
  Sigmoid,
  Silu,       ///< x sigmoid(x)
  QuickGelu,  ///< x sigmoid(1.702 x), CLIP's
  Exp,
  Erf,
  Log,
  Negate,
  Abs,
  Sqrt,
  Reciprocal,
};

/// Element-wise functions of two arguments. Min and Max give NaN when either argument is NaN.
enum class Binary { Add, Subtract, Multiply, Divide, Min, Max };

/// y[rows, n] = activation(x[rows, k] . B[k, n] + bias[n]) + residual[rows, n].
///
/// Each element is summed over k in ascending order by one accumulator, so a row has the same bits
/// whatever rows it is computed with. Strides are distances between rows, in floats.
struct GemmArgs {
  std::int64_t rows, n, k;
  const float* x;
  std::int64_t x_stride;
  std::int64_t x_step = 1;  ///< between the k elements of a row of x: its rows for a transposed x
  const float* packed;      ///< B as pack_b wrote it
  const float* bias;        ///< or null
  Unary activation;
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  bool accumulate;  ///< start the sums from y instead of 0
};

/// The tile of results that a kernel of products keeps in registers: blocks of whole tiles lose
/// nothing.
struct ProductGrain {
  std::int64_t rows, columns;
  double speed = 1;  ///< of its multiply-adds, in those of float32 in the same vectors
};

/// A matrix [n, k] of few nonzeros, for `sparse_gemm`. Rows come in groups of `group`, which share
/// an entry for every column where one of them is not zero.
///
/// Entries lie in the order: block of kSparseBlock rows, chunk of kSparseChunk columns, group,
/// column. `starts` has for each group of each chunk where its entries begin, and the end of all.
/// The groups of a chunk come by the number of their entries, so that a processor can tell when the
/// loop over them ends.
struct SparseMatrix {
  std::int64_t n, k;
  int group;  ///< 1 or kSparseGroup
  const std::int32_t* starts;
  const std::uint8_t* groups;    ///< of each start: which of its block
  const std::uint16_t* columns;  ///< of each entry, counted from the beginning of its chunk
  const float* values;           ///< `group` for each entry
};
inline constexpr std::int64_t kSparseBlock = 64;
inline constexpr std::int64_t kSparseChunk = 128;
inline constexpr int kSparseGroup = 4;

/// y[rows, n] = activation(x[rows, k] . weight^T + bias[n]) + residual[rows, n] with the bits of
/// `gemm` for finite x. A number is never multiplied with a zero of the weight, which `gemm` does:
/// whoever wants its NaN for infinity times zero asks `is_finite` first.
struct SparseGemmArgs {
  std::int64_t rows;
  SparseMatrix weight;
  const float* x;
  std::int64_t x_stride;
  const float* bias;  ///< or null
  Unary activation;
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  float* scratch;  ///< sparse_scratch_size(k) floats on a cache line
};

/// y[rows, chosen] = the chosen columns of x.
struct TakeColumnsArgs {
  std::int64_t rows, chosen;
  const std::int32_t* columns;
  const float* x;
  std::int64_t x_stride;
  float* y;
  std::int64_t y_stride;
};

/// y[rows, n] = x[rows, chosen] at the chosen columns and activation(bias[n]) at the others, plus
/// residual[rows, n].
struct SpreadColumnsArgs {
  std::int64_t rows, n, chosen;
  const std::int32_t* columns;
  float* x;  ///< gets the residual
  std::int64_t x_stride;
  const float* bias;  ///< or null
  Unary activation;
  float* others;          ///< scratch of n floats
  const float* residual;  ///< or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
};

/// A score of attention this far below the highest of its row has weight 0: a weight of about 2^-64
/// is beyond what a sum of floats can hold beside 1, and its products with gradients are normal
/// numbers. ops/underflow.h has the same for the definition.
inline constexpr float kLowestAttentionScore = -44.0f;

/// out = softmax(scale q . k^T) . v for one sequence and one head; rows [q_begin, q_end) of `out`.
///
/// With `causal`, query i sees keys 0 .. i + (lk - lq), and lk must be at least lq. A key whose
/// `keep` is 0 has weight exactly 0, but its k and v must be finite. A query none of whose visible
/// keys is kept weighs them all equally, which is what adding the lowest float to each score does.
/// The bits of a row do not depend on the range it is computed in.
///
/// With rounding, weights are divided by their sum and rounded, then multiply the values.
///
/// With dropout, weights are dropped after the division by their sum and the rounding. Eight keys
/// of a query share the counter {site << 16 | head, query << 16 | key / 8, example, step}, in
/// halves as in DropoutRowsArgs; heads and queries are below 65536.
struct AttentionArgs {
  std::int64_t lq, lk, d;
  std::int64_t q_begin, q_end;
  const float* q;
  const float* k;
  const float* v;
  float* out;
  std::int64_t q_stride, k_stride, v_stride, out_stride;
  float scale;
  bool causal;
  const std::uint8_t* keep;  ///< lk entries, or null to keep all
  /// log(sum over keys of exp(score)) of row i at [i], or null; the lowest float if no key is kept.
  float* row_log_sum_exp;
  float* scratch;  ///< attention_scratch_size(lq, lk, d) floats
  Dropout dropout = {};
  std::uint32_t head = 0, example = 0;  ///< only for dropout
  WeightRounding rounding = {};
  /// What `attention_pack` made of k and v for all ranges of queries, or null: then this call packs
  /// them in its scratch.
  const void* packed = nullptr;
};

/// What a cache keeps of keys and values (ops/cache_rows.h).
enum class CacheKind { Float, Bf16, Int8 };

/// One head of keys and of values in caches of the same kind.
struct CacheRows {
  CacheKind kind;
  std::int64_t d;
  const std::byte* k;
  const std::byte* v;
  std::int64_t stride;  ///< bytes from a row to the next
  std::int64_t scales;  ///< Int8: bytes from a row's numbers to the float that they are worth
};

/// out[h] = softmax(scale q[h] . k^T) . v for one token: the `group` query heads that share one
/// head of keys, [group, d] each, and the first `lk` rows of a cache.
struct AttendCacheArgs {
  std::int64_t lk, group;
  const float* q;
  CacheRows cache;
  float* out;
  float scale;
  float* scratch;  ///< attend_cache_scratch_size(lk, group) floats
};

/// y = (z - mean) / sqrt(variance + eps) * gamma + beta, where z = x + residual.
struct LayerNormArgs {
  std::int64_t rows, n;
  const float* x;
  std::int64_t x_stride;
  const float* residual;  ///< or null
  std::int64_t residual_stride;
  const float* gamma;  ///< or null for 1
  const float* beta;   ///< or null for 0
  float eps;
  float* y;  ///< may be x or residual
  std::int64_t y_stride;
  float* mean;  ///< one for each row, or null
  float* rstd;  ///< 1 / sqrt(variance + eps) of each row, or null
};

/// y = x / sqrt(mean(x^2) + eps) * gamma.
struct RmsNormArgs {
  std::int64_t rows, n;
  const float* x;
  std::int64_t x_stride;
  const float* gamma;  ///< or null for 1
  float eps;
  float* y;  ///< may be x
  std::int64_t y_stride;
  float* rstd;  ///< or null
};

/// Each row of y from the same row of x; y may be x.
struct RowsArgs {
  std::int64_t rows, n;
  const float* x;
  std::int64_t x_stride;
  float* y;
  std::int64_t y_stride;
};

/// Turns pairs of features: (a, b) becomes (a cos - b sin, a sin + b cos). A pair of a head is its
/// elements i and i + half, or 2i and 2i + 1 if interleaved.
struct RopeArgs {
  std::int64_t rows, heads, half;
  bool interleaved;
  const float* x;
  std::int64_t x_stride;
  const float* cosines;  ///< `half` for each row
  const float* sines;
  float* y;  ///< may be x
  std::int64_t y_stride;
};

/// One argument of `binary`: element [r, c] is data[r * row_stride + c * step], step 0 or 1. A
/// row_stride of 0 repeats one row, a step of 0 repeats one number along the row.
struct Operand {
  const float* data;
  std::int64_t row_stride;
  std::int64_t step;
};

struct BinaryArgs {
  Binary op;
  std::int64_t rows, n;
  Operand a, b;
  float* y;  ///< may be an operand's data where the strides agree
  std::int64_t y_stride;
};

inline constexpr int kMaxEmbeddingTables = 3;

/// y[r, :] = tables[0][ids[0][r], :] + tables[1][ids[1][r], :] + ..., in that order.
/// The ids are not checked here: whoever reads them from a user does.
struct EmbeddingSumArgs {
  std::int64_t rows, n;
  int num_tables;                            ///< 1 to kMaxEmbeddingTables
  const float* tables[kMaxEmbeddingTables];  ///< rows of n floats, densely
  const std::int32_t* ids[kMaxEmbeddingTables];
  float* y;
  std::int64_t y_stride;
};

inline constexpr std::int64_t kSquaresBlock = 4096;

/// y[i, j] is the sum over p of a[i, p] * b[j, p] modulo 2^32: exact where the sum fits. Rows of a
/// and b are padded with zeros to kIntegerDepth, which strides and depth are multiples of.
struct IntegerProductsArgs {
  std::int64_t m, n, depth;
  const std::int16_t* a;
  std::int64_t a_stride;
  const std::int16_t* b;
  std::int64_t b_stride;
  std::int32_t* y;
  std::int64_t y_stride;
};
constexpr std::int64_t kIntegerDepth = 32;

/// The kernels of one instruction set. Each runs on the calling thread, over the rows it is given.
struct Kernels {
  const char* isa;
  /// Floats that pack_b writes for B[k, n].
  std::int64_t (*packed_size)(std::int64_t n, std::int64_t k);
  /// Packs B whose element [p, j] is b[j * stride_n + p * stride_k].
  void (*pack_b)(const float* b, std::int64_t n, std::int64_t k, std::int64_t stride_n,
                 std::int64_t stride_k, float* packed);
  void (*gemm)(const GemmArgs&);
  ProductGrain (*gemm_grain)();
  /// `gemm` to the same bits for one block of a product whose operands no second-level cache
  /// holds; x must not be transposed, nor sums start from y.
  void (*gemm_block)(const GemmArgs&, float* scratch);
  /// The floats of its scratch, which begins on a cache line.
  std::int64_t (*gemm_block_scratch)(std::int64_t rows, std::int64_t n);
  /// Whether no number is NaN or infinite.
  bool (*is_finite)(const float* x, std::int64_t count);
  std::int64_t (*sparse_scratch_size)(std::int64_t k);
  void (*sparse_gemm)(const SparseGemmArgs&);
  void (*take_columns)(const TakeColumnsArgs&);
  void (*spread_columns)(const SpreadColumnsArgs&);
  std::int64_t (*attention_scratch_size)(std::int64_t lq, std::int64_t lk, std::int64_t d);
  void (*attention)(const AttentionArgs&);
  std::int64_t (*attention_packed_bytes)(std::int64_t lk, std::int64_t d);
  /// Packs k and v; `packed` is on a cache line.
  void (*attention_pack)(const AttentionArgs&, void* packed);
  /// The first query of the tile in which query `row` of lq is. A range that begins and ends at
  /// such a one divides no tile.
  std::int64_t (*attention_tile)(std::int64_t lq, std::int64_t row);
  std::int64_t (*attend_cache_scratch_size)(std::int64_t lk, std::int64_t group);
  void (*attend_cache)(const AttendCacheArgs&);
  /// The first rows of a cache as floats, [rows, d] each.
  void (*widen_cache)(const CacheRows& cache, std::int64_t rows, float* k, float* v);
  /// to[i] = the bfloat16 number nearest to from[i].
  void (*round_to_bf16)(const float* from, std::int64_t count, std::uint16_t* to);
  void (*layer_norm)(const LayerNormArgs&);
  void (*rms_norm)(const RmsNormArgs&);
  void (*softmax_rows)(const RowsArgs&);
  void (*log_softmax_rows)(const RowsArgs&);
  void (*rope_rows)(const RopeArgs&);
  void (*integer_products)(const IntegerProductsArgs&);
  void (*convolve)(const ConvolveArgs&);
  void (*winograd_input)(const WinogradInputArgs&);
  void (*winograd_filter)(const WinogradFilterArgs&);
  void (*winograd_output)(const WinogradOutputArgs&);
  void (*winograd_gradient)(const WinogradGradientArgs&);
  void (*winograd_taps)(const WinogradTapsArgs&);
  void (*pool)(const PoolArgs&);
  void (*transpose_matrix)(const TransposeArgs&);
  /// y[i] = op(x[i]); y may be x.
  void (*unary)(Unary op, const float* x, std::int64_t count, float* y);
  void (*binary)(const BinaryArgs&);
  void (*embedding_sum)(const EmbeddingSumArgs&);

  // What only training needs. The gradient of a linear layer's input is `gemm` with the weight
  // [n, k] packed as pack_b(weight, k, n, 1, k, packed).
  void (*dropout_rows)(const DropoutRowsArgs&);
  void (*weight_gradient)(const WeightGradientArgs&);
  void (*convolve_gradient)(const ConvolveGradientArgs&);
  /// out[n] += the sum of x[rows, n] over its rows, in ascending order.
  void (*sum_rows_accumulate)(const float* x, std::int64_t rows, std::int64_t n,
                              std::int64_t stride, float* out);
  /// out[n] = or += the sum of the rows of x that `indices` names, in that order.
  void (*sum_selected_rows)(const float* x, std::int64_t stride, const std::int32_t* indices,
                            std::int64_t count, std::int64_t n, float* out, bool accumulate);
  void (*layer_norm_backward)(const NormBackwardArgs&);
  void (*rms_norm_backward)(const NormBackwardArgs&);
  void (*channel_moments)(const ChannelMomentsArgs&);
  void (*channel_products)(const ChannelProductsArgs&);
  void (*scale_channels)(const ScaleChannelsArgs&);
  void (*scale_channels_backward)(const ScaleChannelsBackwardArgs&);
  void (*softmax_backward_rows)(const SoftmaxBackwardArgs&);
  void (*log_softmax_backward_rows)(const SoftmaxBackwardArgs&);
  /// dx[i] = dy[i] op'(x[i]), 0 where relu and abs have a corner; dx may be dy or x.
  void (*unary_backward)(Unary op, const float* dy, const float* x, std::int64_t count, float* dx);
  std::int64_t (*attention_backward_scratch_size)(std::int64_t lq, std::int64_t lk, std::int64_t d);
  void (*attention_backward)(const AttentionBackwardArgs&);
  void (*cross_entropy_rows)(const CrossEntropyArgs&);
  void (*cross_entropy_backward_rows)(const CrossEntropyBackwardArgs&);
  void (*adamw)(const AdamwArgs&);
  void (*sgd)(const SgdArgs&);
  /// The sum of squares, in double: that of each kSquaresBlock elements by itself, added in order.
  /// Calls for one block each, added in order, give the same bits; every instruction set does.
  double (*sum_squares)(const float* x, std::int64_t count);

  /// dx[i] = dy[i] where minimum <= x[i] <= maximum, else 0; dx may be dy.
  void (*gate)(const float* dy, const float* x, float minimum, float maximum, std::int64_t count,
               float* dx);
  /// The elements one learned scale covers; returns the gradient of the scale.
  float (*learned_step)(const LearnedStepArgs&);

  /// Multiplies and adds in registers alone, `rounds` times; returns the operations done.
  double (*fma_burst)(std::int64_t rounds);
};

/// Calls X(entry) for every function of the table: the instruction sets fill it in by this list,
/// and a test sees that some step reaches each.
#define LATHE_EVERY_KERNEL(X)        \
  X(packed_size)                     \
  X(pack_b)                          \
  X(gemm)                            \
  X(gemm_grain)                      \
  X(gemm_block)                      \
  X(gemm_block_scratch)              \
  X(is_finite)                       \
  X(sparse_scratch_size)             \
  X(sparse_gemm)                     \
  X(take_columns)                    \
  X(spread_columns)                  \
  X(attention_scratch_size)          \
  X(attention)                       \
  X(attention_packed_bytes)          \
  X(attention_pack)                  \
  X(attention_tile)                  \
  X(attend_cache_scratch_size)       \
  X(attend_cache)                    \
  X(widen_cache)                     \
  X(round_to_bf16)                   \
  X(layer_norm)                      \
  X(rms_norm)                        \
  X(softmax_rows)                    \
  X(log_softmax_rows)                \
  X(rope_rows)                       \
  X(integer_products)                \
  X(convolve)                        \
  X(winograd_input)                  \
  X(winograd_filter)                 \
  X(winograd_output)                 \
  X(winograd_gradient)               \
  X(winograd_taps)                   \
  X(pool)                            \
  X(transpose_matrix)                \
  X(unary)                           \
  X(binary)                          \
  X(embedding_sum)                   \
  X(dropout_rows)                    \
  X(weight_gradient)                 \
  X(convolve_gradient)               \
  X(sum_rows_accumulate)             \
  X(sum_selected_rows)               \
  X(layer_norm_backward)             \
  X(rms_norm_backward)               \
  X(channel_moments)                 \
  X(channel_products)                \
  X(scale_channels)                  \
  X(scale_channels_backward)         \
  X(softmax_backward_rows)           \
  X(log_softmax_backward_rows)       \
  X(unary_backward)                  \
  X(attention_backward_scratch_size) \
  X(attention_backward)              \
  X(cross_entropy_rows)              \
  X(cross_entropy_backward_rows)     \
  X(adamw)                           \
  X(sgd)                             \
  X(sum_squares)                     \
  X(gate)                            \
  X(learned_step)                    \
  X(fma_burst)

}  // namespace lathe::engine
