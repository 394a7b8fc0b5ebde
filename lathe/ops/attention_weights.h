#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/packed_sequences.h"

/// What attention and its gradient share: their operands, and which query weighs which key how
/// much.
namespace lathe::ops {

/// Operands of attention, counted from q.
inline constexpr std::size_t kQuery = 0, kKey = 1, kValue = 2, kMask = 3, kOffsets = 4, kRandom = 5,
                             kExamples = 6;

std::vector<AttributeSpec> attention_attributes();
/// The operands from q on.
std::vector<OperandSpec> attention_operands();
/// Fails unless the operands fit each other, where q is operand `first` of the call.
void check_attention(const OpCall& call, std::size_t first);
/// The part of it that is about shapes, for elements of any dtype.
void check_attention_shapes(const OpCall& call, std::size_t first);
/// Operations of one product of all queries with all keys they may see.
Size attention_product_flops(const OpCall& call, std::size_t first);

/// How heads lie side by side in the rows.
struct AttentionHeads {
  std::int64_t heads, kv_heads, head_size;
  std::int64_t q_width, k_width;  ///< elements of a row
};
AttentionHeads attention_heads(const AttributeReader& attributes,
                               std::span<const Tensor* const> operands);

struct AttentionSizes : AttentionHeads {
  double scale;  ///< of the scores
};
AttentionSizes attention_sizes(const AttributeReader& attributes,
                               std::span<const Tensor* const> operands);

/// One sequence: where its queries and keys lie among all rows.
struct AttentionSequence {
  std::int64_t first_query, num_queries, first_key, num_keys;
};
std::vector<AttentionSequence> attention_sequences(std::span<const Tensor* const> operands,
                                                   bool causal);

/// The rule of pack-sequences for ops with attention's first five operands; what is behind them
/// belongs to tokens.
Value pack_attention(Graph& graph, NodeId node, const PackedSequences& sequences);

/// One query of one head, and the keys of its sequence. Key j begins at first_key + j * k_width.
struct AttentionRow {
  std::int64_t query;               ///< where its elements begin in q, and its result's in y
  std::int64_t first_key;           ///< where the elements of key 0 begin in k, and in v
  std::span<const double> weights;  ///< softmax of the scores
  std::span<const double> rounded;  ///< the same in `weight_format`: what multiplies the values
  std::span<const double> factors;  ///< what dropout multiplies each rounded weight by
  bool sees_no_key;                 ///< the weights are then equal whatever the scores are
};
/// Visits the rows of one execution; `operands` begin with q.
void for_each_attention_row(const AttributeReader& attributes,
                            std::span<const Tensor* const> operands,
                            const std::function<void(const AttentionRow&)>& visit);
/// The same with scores of one's own, of the query and the key whose elements begin there.
void for_each_attention_row(const AttributeReader& attributes,
                            std::span<const Tensor* const> operands,
                            const std::function<double(std::int64_t, std::int64_t)>& score,
                            const std::function<void(const AttentionRow&)>& visit);

}  // namespace lathe::ops
