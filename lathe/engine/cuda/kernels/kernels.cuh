#pragma once

// The launches that the files of this folder define, for the table that lists them.

#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine::cuda {

Device device_functions();
const char* gemm(Gemm*, const GemmArgs&, Stream*);
const char* make_gemm(Stream*, Gemm**);
void drop_gemm(Gemm*);
void products(const ProductArgs&, Stream*);
void add_parts(const AddPartsArgs&, Stream*);
void row_program(const RowProgramArgs&, const RowProgramArgs* on_device, Stream*);
void row_chain(const RowChainArgs&, Stream*);
bool few_rows(const FewRowsArgs&, Stream*);
bool row_products(const RowProductsArgs&, Stream*);
void halves(const HalvesArgs&, Stream*);
void epilogue(const EpilogueArgs&, Stream*);
void transpose(const TransposeArgs&, Stream*);
void map(const MapArgs&, Stream*);
void map_gradient(const MapGradientArgs&, Stream*);
void pair(const PairArgs&, Stream*);
void pair_gradient(const PairGradientArgs&, Stream*);
void copy(const CopyArgs&, Stream*);
void fill(const FillArgs&, Stream*);
void cast(const CastArgs&, Stream*);
void scalars(const ScalarArgs&, Stream*);
void vectors(const VectorArgs&, Stream*);
void reduce(const ReduceArgs&, Stream*);
void max_gradient(const MaxGradientArgs&, Stream*);
void argmax(const ArgmaxArgs&, Stream*);
void sum_rows(const SumRowsArgs&, Stream*);
void softmax(const SoftmaxArgs&, Stream*);
void normalize(const NormalizeArgs&, Stream*);
void normalize_gradient(const NormalizeGradientArgs&, Stream*);
void cross_entropy(const CrossEntropyArgs&, Stream*);
void cross_entropy_gradient(const CrossEntropyGradientArgs&, Stream*);
void squared_error(const SquaredErrorArgs&, Stream*);
void squared_error_gradient(const SquaredErrorGradientArgs&, Stream*);
void binary_cross_entropy(const BinaryCrossEntropyArgs&, Stream*);
void binary_cross_entropy_gradient(const BinaryCrossEntropyGradientArgs&, Stream*);
void embedding(const EmbeddingArgs&, Stream*);
void embedding_order(const EmbeddingGradientsArgs&, Stream*);
void embedding_gradients(const EmbeddingGradientsArgs&, Stream*);
void small_table_gradient(const SmallTableGradientArgs&, Stream*);
void gather_rows(const GatherRowsArgs&, Stream*);
void select(const SelectArgs&, Stream*);
void last_token(const LastTokenArgs&, Stream*);
void indices(const IndexArgs&, Stream*);
void positions(const PositionsArgs&, Stream*);
void rope(const RopeArgs&, Stream*);
void dropout(const DropoutArgs&, Stream*);
void attention(const AttentionArgs&, Stream*);
void attention_gradient(const AttentionGradientArgs&, Stream*);
void relative_attention(const RelativeAttentionArgs&, Stream*);
void cached_attention(const CachedAttentionArgs&, Stream*);
void convolution(const ConvolutionArgs&, Stream*);
bool pooled_convolution(const PooledConvolutionArgs&, Stream*);
void grouped_convolution(const GroupedConvolutionArgs&, Stream*);
void filters(const FiltersArgs&, Stream*);
void filter_gradient(const FilterGradientArgs&, Stream*);
void images(const ImagesArgs&, Stream*);
void pool(const PoolArgs&, Stream*);
void pool_gradient(const PoolGradientArgs&, Stream*);
void batch_norm(const BatchNormArgs&, Stream*);
void scale_channels(const ScaleChannelsArgs&, Stream*);
void running_average(const RunningAverageArgs&, Stream*);
void update(const UpdateArgs&, Stream*);
void sum_squares(const SumSquaresArgs&, Stream*);
void gate(const GateArgs&, Stream*);
void prune_values(const PruneValuesArgs&, Stream*);
void quantize(const QuantizeArgs&, Stream*);
void quantize_all(const QuantizeAllArgs&, Stream*);
void quantize_terms(const TermArgs&, Stream*);
void quantize_mase(const MaseArgs&, Stream*);
void learned_step(const LearnedStepArgs&, Stream*);
void learned_steps(const LearnedStepsArgs&, Stream*);
void decode(const DecodeArgs&, Stream*);
bool dequantize(const DequantizeArgs&, Stream*);
void packed_linear(const PackedLinearArgs&, Stream*);
void stream_copy(void* to, const void* from, std::int64_t bytes, Stream*);
const char* free_memory(std::int64_t* free, std::int64_t* total);

}  // namespace lathe::engine::cuda
