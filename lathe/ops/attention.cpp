#include "lathe/ops/attention_weights.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"

// attention(q, k, v, mask, offsets, random, examples) {heads, kv_heads, scale, causal, dropout,
// site, weight_format}
//
// Heads lie side by side in the last axis. For head h, query i and the keys j of its sequence:
//   score[i,j] = scale * dot(q[i,h], k[j,g]),  weight[i,:] = softmax(score[i,:] over kept keys),
//   y[i,h] = sum over j of round(weight[i,j]) * v[j,g],  where g = h / (heads / kv_heads)
// and round is to `weight_format`, if one is given: see attention_weight_format.h.
// A key is kept unless mask[j] is 0 or, when causal, j > i; a dropped key weighs exactly 0. A query
// that keeps no key at all gives every key of its sequence the same weight, as a softmax of equally
// low scores does in other frameworks. A score more than 44 below the highest has weight 0.
//
// Padded: q [B,Lq,heads*d], k and v [B,Lk,kv_heads*d], mask [B,Lk]. Packed: [T,..] with offsets
// [S+1], and each sequence attends to itself; with q [S,..] only its first token asks.
//
// In training, `random` and the dataset index of each sequence, `examples`, are there too, and
// weights are dropped, after rounding, as dropout_mask.h says. Without them this is inference,
// whatever `dropout` is.
namespace lathe::ops::attention {
namespace {

std::vector<Type> infer(const OpCall& call) {
  check_attention(call, 0);
  const Type& q = call.input(kQuery);
  return {{.dtype = q.dtype, .shape = q.shape}};
}

// Queries by keys, weights by values.
Size flops(const OpCall& call) {
  return Size(2) * attention_product_flops(call, 0);
}

void reference(const KernelCall& call) {
  const AttentionSizes sizes = attention_sizes(call.attributes, call.inputs);
  const std::vector<double> v = read_elements(call.input(kValue));
  std::vector<double> y(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for_each_attention_row(call.attributes, call.inputs, [&](const AttentionRow& row) {
    for (std::size_t j = 0; j < row.weights.size(); ++j) {
      const std::int64_t value = row.first_key + static_cast<std::int64_t>(j) * sizes.k_width;
      for (std::int64_t d = 0; d < sizes.head_size; ++d)
        y[static_cast<std::size_t>(row.query + d)] +=
            row.rounded[j] * row.factors[j] * v[static_cast<std::size_t>(value + d)];
    }
  });
  write_elements(call.outputs[0], y);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  std::vector<Value> inputs = graph.inputs(node);
  inputs.insert(inputs.begin(), gradients[0]);
  const Value dq = derive(graph, node, "gradient", "attention_gradient", std::move(inputs),
                          graph.attributes(node));
  std::vector<Value> result = no_gradients(graph, node);
  for (std::int32_t i = 0; i < 3; ++i) result[static_cast<std::size_t>(i)] = {dq.node, i};
  return result;
}

const Register registration{Op{
    .name = "attention",
    .summary = "scaled dot-product attention of several heads, padded or packed",
    .operands = attention_operands(),
    .attributes = attention_attributes(),
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .gradient = gradient,
    .dropout_attribute = "dropout",
    .pack = pack_attention,
    .examples = {"attention(f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,L]) {heads=2}",
                 "attention(f32[T,8], f32[T,8], f32[T,8], none, i32[S+1]) {heads=2, causal=true}",
                 "attention(f32[B,2,8], f32[B,L,4], f32[B,L,4]) {heads=4, kv_heads=2, scale=0.5}",
                 "attention(f32[S,8], f32[T,8], f32[T,8], none, i32[S+1]) {heads=2}",
                 "attention(f32[T,8], f32[T,8], f32[T,8], none, i32[S+1], i32[3], i32[S]) "
                 "{heads=2, dropout=0.25, site=7}",
                 "attention(f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,L]) "
                 "{heads=2, weight_format=\"int:4,asymmetric\"}"},
}};

}  // namespace
}  // namespace lathe::ops::attention
