#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/sequence_offsets.h"

// attention(q, k, v, mask, offsets) {heads, kv_heads, scale, causal, dropout, site}
//
// Heads lie side by side in the last axis. For head h, query i and the keys j of its sequence:
//   score[i,j] = scale * dot(q[i,h], k[j,g]),  weight[i,:] = softmax(score[i,:] over kept keys),
//   y[i,h] = sum over j of weight[i,j] * v[j,g],  where g = h / (heads / kv_heads).
// A key is kept unless mask[j] is 0 or, when causal, j > i; a dropped key weighs exactly 0. A query
// that keeps no key at all gives every key of its sequence the same weight, as a softmax of equally
// low scores does in other frameworks.
//
// Padded: q [B,Lq,heads*d], k and v [B,Lk,kv_heads*d], mask [B,Lk]. Packed: [T,..] with offsets
// [S+1], and each sequence attends to itself. Dropout on the weights is an affair of training; this
// reference computes inference.
namespace lathe::ops {
namespace {

constexpr std::size_t kQuery = 0, kKey = 1, kValue = 2, kMask = 3, kOffsets = 4;

std::int64_t kv_heads_of(const AttributeReader& attributes) {
  const std::int64_t written = attributes.integer("kv_heads");
  return written == 0 ? attributes.integer("heads") : written;
}

void check_heads(const OpCall& call) {
  const std::int64_t heads = call.attributes().integer("heads");
  const std::int64_t kv_heads = kv_heads_of(call.attributes());
  if (heads < 1) fail("attention needs one head or more, not {}", heads);
  if (kv_heads < 1 || heads % kv_heads != 0)
    fail("attention: {} heads cannot share {} key heads evenly", heads, kv_heads);
  const Type& q = call.input(kQuery);
  const Type& k = call.input(kKey);
  const std::int64_t width = constant_size("attention", q.axis(-1), q);
  if (width % heads != 0)
    fail("attention: the last axis of {} does not divide into {} heads", to_text(q), heads);
  if (k.axis(-1) != Size(width / heads * kv_heads))
    fail("attention: keys {} must have {} heads of {}, {} in all", to_text(k), kv_heads,
         width / heads, width / heads * kv_heads);
}

void check_padded(const OpCall& call) {
  const Type& q = call.input(kQuery);
  const Type& k = call.input(kKey);
  if (call.has(kOffsets))
    fail("attention: offsets belong to packed queries [T,n], not {}", to_text(q));
  if (q.axis(0) != k.axis(0))
    fail("attention: queries {} and keys {} are of different batches", to_text(q), to_text(k));
  if (call.attributes().flag("causal") && q.axis(1) != k.axis(1))
    fail("causal attention needs as many keys as queries: {} and {} differ", q.axis(1).text(),
         k.axis(1).text());
  if (!call.has(kMask)) return;
  const Type& mask = call.input(kMask);
  require_integer("attention", "mask", mask);
  if (mask.shape != Shape{k.axis(0), k.axis(1)})
    fail("attention: mask {} does not fit keys {}: expected shape [{},{}]", to_text(mask),
         to_text(k), k.axis(0).text(), k.axis(1).text());
}

void check_packed(const OpCall& call) {
  const Type& q = call.input(kQuery);
  if (!call.has(kOffsets)) fail("attention on packed {} needs offsets", to_text(q));
  if (call.has(kMask)) fail("attention on packed {} takes offsets and no mask", to_text(q));
  require_offsets(call.input(kOffsets));
  if (q.axis(0) != call.input(kKey).axis(0))
    fail("packed attention needs as many keys as queries: {} and {} differ", q.axis(0).text(),
         call.input(kKey).axis(0).text());
}

std::vector<Type> infer(const OpCall& call) {
  require_floating("attention", call, kQuery);
  const Type& q = call.input(kQuery);
  const Type& k = call.input(kKey);
  if (q.rank() != 2 && q.rank() != 3)
    fail("attention needs queries [B,L,n] or packed [T,n], not {}", to_text(q));
  if (k.rank() != q.rank())
    fail("attention: queries {} and keys {} differ in rank", to_text(q), to_text(k));
  if (k != call.input(kValue))
    fail("attention: keys {} and values {} differ", to_text(k), to_text(call.input(kValue)));
  require_same_dtype("attend with", q, k);
  check_heads(call);
  if (q.rank() == 3)
    check_padded(call);
  else
    check_packed(call);
  return {{.dtype = q.dtype, .shape = q.shape}};
}

// Two products of queries and keys, two operations a term. The cost of a packed batch is the sum of
// squared lengths, which is no polynomial in T: with L for the longest sequence this is its bound.
Size flops(const OpCall& call) {
  const Type& q = call.input(kQuery);
  const Size keys = q.rank() == 3 ? call.input(kKey).axis(1) : Size::symbol("L");
  return Size(4) * q.num_elements() * keys;
}

// One sequence: where its queries and keys lie among all rows, and which keys count.
struct Sequence {
  std::int64_t first_query, num_queries, first_key, num_keys;
};

std::vector<Sequence> sequences_of(const KernelCall& call) {
  std::vector<Sequence> result;
  const Tensor& q = call.input(kQuery);
  const Tensor& k = call.input(kKey);
  if (q.rank() == 3) {
    for (std::int64_t b = 0; b < q.dim(0); ++b)
      result.push_back({b * q.dim(1), q.dim(1), b * k.dim(1), k.dim(1)});
    return result;
  }
  const std::vector<std::int64_t> offsets = read_offsets(call.input(kOffsets), q.dim(0));
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t length = offsets[s + 1] - offsets[s];
    result.push_back({offsets[s], length, offsets[s], length});
  }
  return result;
}

// Turns scores into weights in place; -infinity marks a dropped key.
void softmax(std::span<double> scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  if (highest == -std::numeric_limits<double>::infinity()) {
    std::fill(scores.begin(), scores.end(), 1.0 / static_cast<double>(scores.size()));
    return;
  }
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - highest);
  for (double& score : scores) score /= sum;
}

void reference(const KernelCall& call) {
  const std::int64_t heads = call.attributes.integer("heads");
  const std::int64_t kv_heads = kv_heads_of(call.attributes);
  const bool causal = call.attributes.flag("causal");
  const std::vector<double> q = read_elements(call.input(kQuery));
  const std::vector<double> k = read_elements(call.input(kKey));
  const std::vector<double> v = read_elements(call.input(kValue));
  const std::vector<double> mask =
      call.has(kMask) ? read_elements(call.input(kMask)) : std::vector<double>{};
  const std::int64_t q_width = call.input(kQuery).dims().back();
  const std::int64_t k_width = call.input(kKey).dims().back();
  const std::int64_t head_size = q_width / heads;
  double scale = call.attributes.real("scale");
  if (scale == 0) scale = 1.0 / std::sqrt(static_cast<double>(head_size));

  std::vector<double> y(q.size(), 0.0);
  std::vector<double> weights;
  for (const Sequence& sequence : sequences_of(call)) {
    if (sequence.num_keys == 0) continue;
    weights.resize(static_cast<std::size_t>(sequence.num_keys));
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t kv_column = h / (heads / kv_heads) * head_size;
      for (std::int64_t i = 0; i < sequence.num_queries; ++i) {
        const std::int64_t query = (sequence.first_query + i) * q_width + h * head_size;
        for (std::int64_t j = 0; j < sequence.num_keys; ++j) {
          const std::int64_t row = sequence.first_key + j;
          double& score = weights[static_cast<std::size_t>(j)];
          score = -std::numeric_limits<double>::infinity();
          if (causal && j > i) continue;
          if (!mask.empty() && mask[static_cast<std::size_t>(row)] == 0) continue;
          score = 0;
          for (std::int64_t d = 0; d < head_size; ++d)
            score += q[static_cast<std::size_t>(query + d)] *
                     k[static_cast<std::size_t>(row * k_width + kv_column + d)];
          score *= scale;
        }
        softmax(weights);
        for (std::int64_t j = 0; j < sequence.num_keys; ++j) {
          const std::int64_t value = (sequence.first_key + j) * k_width + kv_column;
          for (std::int64_t d = 0; d < head_size; ++d)
            y[static_cast<std::size_t>(query + d)] +=
                weights[static_cast<std::size_t>(j)] * v[static_cast<std::size_t>(value + d)];
        }
      }
    }
  }
  write_elements(call.outputs[0], y);
}

// Packed, there are no padding keys left to mask: offsets say what belongs together.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  int num_packed = 0;
  for (const std::size_t operand : {kQuery, kKey, kValue})
    num_packed += is_packed(graph.type(graph.input(node, operand)), sequences) ? 1 : 0;
  // Rows of a fixed length, such as the patches of images, stay as they are.
  if (num_packed == 0) return repeat_packed(graph, node, graph.attributes(node));
  if (num_packed != 3) refuse_to_pack(graph, node, "only some of its operands hold tokens");
  return add_packed(graph, node,
                    {.name = {},
                     .op = "attention",
                     .inputs = {graph.input(node, kQuery), graph.input(node, kKey),
                                graph.input(node, kValue), kNone, sequences.offsets},
                     .attributes = graph.attributes(node)});
}

const Register registration{Op{
    .name = "attention",
    .summary = "scaled dot-product attention of several heads, padded or packed",
    .operands = {{.name = "q"},
                 {.name = "k"},
                 {.name = "v"},
                 {.name = "mask", .optional = true},
                 {.name = "offsets", .optional = true}},
    .attributes = {{.name = "heads",
                    .default_value = 1,
                    .summary = "number of query heads",
                    .required = true},
                   {.name = "kv_heads",
                    .default_value = 0,
                    .summary = "number of key and value heads; 0: as many as query heads"},
                   {.name = "scale",
                    .default_value = 0.0,
                    .summary = "factor of the scores; 0: 1 / sqrt(head size)"},
                   {.name = "causal",
                    .default_value = false,
                    .summary = "whether a query sees only keys up to its own position"},
                   {.name = "dropout",
                    .default_value = 0.0,
                    .summary = "share of weights dropped in training"},
                   {.name = "site",
                    .default_value = 0,
                    .summary = "which stream of random numbers dropout draws from"}},
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .dropout_attribute = "dropout",
    .pack = pack,
    .examples = {"attention(f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,L]) {heads=2}",
                 "attention(f32[T,8], f32[T,8], f32[T,8], none, i32[S+1]) {heads=2, causal=true}",
                 "attention(f32[B,2,8], f32[B,L,4], f32[B,L,4]) {heads=4, kv_heads=2, scale=0.5}"},
}};

}  // namespace
}  // namespace lathe::ops
