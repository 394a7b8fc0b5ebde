#pragma once

#include <cstdint>

#include "lathe/engine/cuda/arguments/attention.h"
#include "lathe/engine/cuda/arguments/device.h"
#include "lathe/engine/cuda/arguments/elementwise.h"
#include "lathe/engine/cuda/arguments/format.h"
#include "lathe/engine/cuda/arguments/lookup.h"
#include "lathe/engine/cuda/arguments/loss.h"
#include "lathe/engine/cuda/arguments/operand.h"
#include "lathe/engine/cuda/arguments/optimizer.h"
#include "lathe/engine/cuda/arguments/packed.h"
#include "lathe/engine/cuda/arguments/reduction.h"
#include "lathe/engine/cuda/arguments/row_chain.h"
#include "lathe/engine/cuda/arguments/row_program.h"
#include "lathe/engine/cuda/arguments/rows.h"

// What liblathe_cuda.so offers. Plain data and function pointers only: the library is compiled by
// nvcc, links to nothing of ours, and is loaded when a GPU is asked for; whatever plans, checks and
// explains is ordinary C++ on this side. A kernel launches and returns; `Device::launch_error` says
// what went wrong.
namespace lathe::engine::cuda {

/// C[m, n] = op(A) . op(B) + beta * C, column-major as cuBLAS has it; bias of length m.
struct GemmArgs {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  Number c_as = Number::F32;  ///< or BF16; the bias is as c
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batches = 1, stride_a = 0, stride_b = 0, stride_c = 0, stride_bias = 0;
  const void* bias = nullptr;
  Precision precision = Precision::Float32;  ///< with Bf16, a and b are bfloat16 in memory
};

/// One of the products of a launch, row by row: c[m, n] = a(m, k) . b(k, n), and what follows it.
/// It gives zeros beyond the real m, and stops at the real k.
struct Product {
  const void* a = nullptr;
  const void* b = nullptr;
  Number a_as = Number::F32, b_as = Number::F32;  ///< or BF16: how they lie in memory
  bool a_by_k = false;                            ///< a lies as [k, m]; else as [m, k]
  bool b_by_k = false;                            ///< b lies as [k, n]; else as [n, k]
  std::int64_t n = 0;
  Extent m, k;
  /// n of them, added to each row; with Bf16 they are seen as bfloat16, as the other operands.
  const void* bias = nullptr;
  Number bias_as = Number::F32;    ///< or BF16
  const void* before = nullptr;    ///< as c: it is multiplied by map'(before)
  Number before_as = Number::F32;  ///< or BF16
  float* c = nullptr;              ///< the sums with their bias; null where nobody reads them
  float* y = nullptr;              ///< map(c); null where nobody reads it
  /// c and y once more, or only so, as bfloat16, ties to even; null where nobody reads them. With
  /// parts there is no c_half.
  std::uint16_t* c_half = nullptr;
  std::uint16_t* y_half = nullptr;
  Map map = Map::Identity;
  /// More than one: k is cut into that many ranges, and c is [parts, m, n], to be added up by
  /// `add_parts`. Nothing else may follow such a product.
  std::int32_t parts = 1;
  float* sums = nullptr;   ///< [parts, m], the sums of a over k where a lies as [k, m]
  bool is_rounded = true;  ///< with Bf16: c is a product's result; else a gradient that stays float
};
/// Parts for sums over so many rows.
inline constexpr std::int64_t product_parts(std::int64_t rows) {
  const std::int64_t parts = rows / 256;
  return parts < 1 ? 1 : parts > 32 ? 32 : parts;
}
/// Rows from which on the library makes products of large weights.
inline constexpr std::int64_t kFewRows = 64;
/// Rows and columns of a tile, and of one of those products that have so few results that more and
/// smaller tiles are faster.
inline constexpr std::int64_t kProductTile = 64, kSmallProductTile = 16;
inline constexpr std::int64_t kFewResults = std::int64_t{1} << 16;
inline constexpr bool has_small_tiles(const Product& product) {
  return !product.a_by_k && product.m.capacity * product.n <= kFewResults;
}
/// Blocks of threads that a product takes, one for each tile and part.
inline constexpr std::int64_t product_blocks(const Product& product) {
  const std::int64_t tile = has_small_tiles(product) ? kSmallProductTile : kProductTile;
  return (product.m.capacity + tile - 1) / tile * ((product.n + tile - 1) / tile) * product.parts;
}
inline constexpr int kMostProducts = 16;
struct ProductArgs {
  Precision precision = Precision::Float32;
  std::int32_t count = 0;
  std::int32_t num_blocks = 0;
  /// Of each product, beside each other: every block of threads looks through them.
  std::int32_t first_blocks[kMostProducts] = {};
  Product products[kMostProducts];
};

struct RowProductsArgs;  ///< products of a single row (arguments/row_products.h)
struct FewRowsStage;     ///< a product or a norm (arguments/few_rows.h)
/// Stages over few rows, each of which reads what those before it made.
struct FewRowsArgs {
  const FewRowsStage* stages = nullptr;  ///< in device memory
  std::int32_t count = 0;
};

/// Sums that others have left in parts: y[i] = the sum of parts[p, i], in order.
struct SummedParts {
  const float* parts = nullptr;
  std::int32_t num_parts = 0;
  std::int64_t count = 0;
  float* y = nullptr;
  std::int64_t first_block = 0;  ///< of the launch
};
inline constexpr std::int64_t kPartsBlock = 128;  ///< sums that a block of threads makes
struct AddPartsArgs {
  const SummedParts* sums = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;
};

/// y = map(x + bias) + residual, rows beyond the real ones zero; y or y_half may be x.
struct EpilogueArgs {
  const void* x = nullptr;
  Number x_as = Number::F32;        ///< or BF16
  float* y = nullptr;               ///< null: nobody asks
  std::uint16_t* y_half = nullptr;  ///< y as bfloat16; null: nobody asks
  const void* bias = nullptr;
  Number bias_as = Number::F32;  ///< or BF16
  const float* residual = nullptr;
  Map map = Map::Identity;
  std::int64_t n = 0;
  Extent rows;
  bool is_rounded = false;  ///< the bias, and x + bias before the map, are rounded to bfloat16
};

/// y[columns, rows]: x the other way around.
struct TransposeArgs {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t rows = 0, columns = 0;
};

/// Copies of floats rounded to bfloat16, all in one launch.
struct HalfCopy {
  const float* x = nullptr;
  std::uint16_t* y = nullptr;
  std::int64_t count = 0;
  std::int64_t first_block = 0;  ///< of the launch
};
inline constexpr std::int64_t kHalvesBlock = 4096;  ///< elements a block of threads copies
struct HalvesArgs {
  const HalfCopy* copies = nullptr;  ///< in device memory
  std::int32_t count = 0;
  std::int64_t num_blocks = 0;
};

// Of images (arguments/convolution.h, pooling.h and batch_norm.h).
struct ConvolutionArgs;
struct GroupedConvolutionArgs;
struct PooledConvolutionArgs;
struct FiltersArgs;
struct FilterGradientArgs;
struct ImagesArgs;
struct PoolArgs;
struct PoolGradientArgs;
struct BatchNormArgs;
struct ScaleChannelsArgs;
struct RunningAverageArgs;

struct KernelTable {
  /// What the build makes of this header and those it speaks of (LATHE_TABLE_VERSION): a library
  /// built from others is refused.
  const char* version;
  Device device;
  const char* (*gemm)(Gemm*, const GemmArgs&, Stream*);
  void (*products)(const ProductArgs&, Stream*);
  void (*add_parts)(const AddPartsArgs&, Stream*);
  /// The program a second time in device memory, where its instructions are read.
  void (*row_program)(const RowProgramArgs&, const RowProgramArgs* on_device, Stream*);
  void (*row_chain)(const RowChainArgs&, Stream*);
  bool (*few_rows)(const FewRowsArgs&, Stream*);  ///< false: this GPU has no clusters of blocks
  bool (*row_products)(const RowProductsArgs&, Stream*);  ///< false: there is no kernel for these
  void (*halves)(const HalvesArgs&, Stream*);
  void (*epilogue)(const EpilogueArgs&, Stream*);
  void (*transpose)(const TransposeArgs&, Stream*);
  void (*map)(const MapArgs&, Stream*);
  void (*map_gradient)(const MapGradientArgs&, Stream*);
  void (*pair)(const PairArgs&, Stream*);
  void (*pair_gradient)(const PairGradientArgs&, Stream*);
  void (*copy)(const CopyArgs&, Stream*);
  void (*fill)(const FillArgs&, Stream*);
  void (*cast)(const CastArgs&, Stream*);
  void (*scalars)(const ScalarArgs&, Stream*);
  void (*vectors)(const VectorArgs&, Stream*);
  void (*reduce)(const ReduceArgs&, Stream*);
  void (*max_gradient)(const MaxGradientArgs&, Stream*);
  void (*argmax)(const ArgmaxArgs&, Stream*);
  void (*sum_rows)(const SumRowsArgs&, Stream*);
  void (*softmax)(const SoftmaxArgs&, Stream*);
  void (*normalize)(const NormalizeArgs&, Stream*);
  void (*normalize_gradient)(const NormalizeGradientArgs&, Stream*);
  void (*cross_entropy)(const CrossEntropyArgs&, Stream*);
  void (*cross_entropy_gradient)(const CrossEntropyGradientArgs&, Stream*);
  void (*squared_error)(const SquaredErrorArgs&, Stream*);
  void (*squared_error_gradient)(const SquaredErrorGradientArgs&, Stream*);
  void (*binary_cross_entropy)(const BinaryCrossEntropyArgs&, Stream*);
  void (*binary_cross_entropy_gradient)(const BinaryCrossEntropyGradientArgs&, Stream*);
  void (*embedding)(const EmbeddingArgs&, Stream*);
  void (*embedding_order)(const EmbeddingGradientsArgs&, Stream*);
  void (*embedding_gradients)(const EmbeddingGradientsArgs&, Stream*);
  void (*small_table_gradient)(const SmallTableGradientArgs&, Stream*);
  void (*gather_rows)(const GatherRowsArgs&, Stream*);
  void (*select)(const SelectArgs&, Stream*);
  void (*last_token)(const LastTokenArgs&, Stream*);
  void (*indices)(const IndexArgs&, Stream*);
  void (*positions)(const PositionsArgs&, Stream*);
  void (*rope)(const RopeArgs&, Stream*);
  void (*dropout)(const DropoutArgs&, Stream*);
  void (*attention)(const AttentionArgs&, Stream*);
  void (*attention_gradient)(const AttentionGradientArgs&, Stream*);
  void (*relative_attention)(const RelativeAttentionArgs&, Stream*);
  void (*cached_attention)(const CachedAttentionArgs&, Stream*);
  void (*convolution)(const ConvolutionArgs&, Stream*);
  bool (*pooled_convolution)(const PooledConvolutionArgs&, Stream*);  ///< false: not on this GPU
  void (*grouped_convolution)(const GroupedConvolutionArgs&, Stream*);
  void (*filters)(const FiltersArgs&, Stream*);
  void (*filter_gradient)(const FilterGradientArgs&, Stream*);
  void (*images)(const ImagesArgs&, Stream*);
  void (*pool)(const PoolArgs&, Stream*);
  void (*pool_gradient)(const PoolGradientArgs&, Stream*);
  void (*batch_norm)(const BatchNormArgs&, Stream*);
  void (*scale_channels)(const ScaleChannelsArgs&, Stream*);
  void (*running_average)(const RunningAverageArgs&, Stream*);
  void (*update)(const UpdateArgs&, Stream*);
  void (*sum_squares)(const SumSquaresArgs&, Stream*);
  void (*gate)(const GateArgs&, Stream*);
  void (*prune_values)(const PruneValuesArgs&, Stream*);
  void (*quantize)(const QuantizeArgs&, Stream*);
  void (*quantize_all)(const QuantizeAllArgs&, Stream*);
  void (*quantize_terms)(const TermArgs&, Stream*);
  void (*quantize_mase)(const MaseArgs&, Stream*);
  void (*learned_step)(const LearnedStepArgs&, Stream*);
  void (*learned_steps)(const LearnedStepsArgs&, Stream*);
  void (*decode)(const DecodeArgs&, Stream*);
  bool (*dequantize)(const DequantizeArgs&, Stream*);  ///< false: there is no such tile
  void (*packed_linear)(const PackedLinearArgs&, Stream*);
  /// What bandwidth is measured against; whole 16 bytes.
  void (*stream_copy)(void* to, const void* from, std::int64_t bytes, Stream*);
  const char* (*free_memory)(std::int64_t* free, std::int64_t* total);
};

/// The only symbol of the library.
using TableFunction = const KernelTable* (*)();
inline constexpr const char* kTableSymbol = "lathe_cuda_kernels";

}  // namespace lathe::engine::cuda
