#include "lathe/ops/attention_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/ops/attention_weight_format.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/random_operand.h"
#include "lathe/ops/sequence_offsets.h"
#include "lathe/ops/underflow.h"

namespace lathe::ops {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

std::int64_t kv_heads_of(const AttributeReader& attributes) {
  const std::int64_t written = attributes.integer("kv_heads");
  return written == 0 ? attributes.integer("heads") : written;
}

void check_heads(const AttributeReader& attributes, const Type& q, const Type& k) {
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t kv_heads = kv_heads_of(attributes);
  if (heads < 1) fail("attention needs one head or more, not {}", heads);
  if (kv_heads < 1 || heads % kv_heads != 0)
    fail("attention: {} heads cannot share {} key heads evenly", heads, kv_heads);
  const std::int64_t width = constant_size("attention", q.axis(-1), q);
  if (width % heads != 0)
    fail("attention: the last axis of {} does not divide into {} heads", to_text(q), heads);
  if (k.axis(-1) != Size(width / heads * kv_heads))
    fail("attention: keys {} must have {} heads of {}, {} in all", to_text(k), kv_heads,
         width / heads, width / heads * kv_heads);
}

void check_padded(const OpCall& call, std::size_t first) {
  const Type& q = call.input(first + kQuery);
  const Type& k = call.input(first + kKey);
  if (call.has(first + kOffsets))
    fail("attention: offsets belong to packed queries [T,n], not {}", to_text(q));
  if (q.axis(0) != k.axis(0))
    fail("attention: queries {} and keys {} are of different batches", to_text(q), to_text(k));
  if (call.attributes().flag("causal") && q.axis(1) != k.axis(1))
    fail("causal attention needs as many keys as queries: {} and {} differ", q.axis(1).text(),
         k.axis(1).text());
  if (!call.has(first + kMask)) return;
  const Type& mask = call.input(first + kMask);
  require_integer("attention", "mask", mask);
  if (mask.shape != Shape{k.axis(0), k.axis(1)})
    fail("attention: mask {} does not fit keys {}: expected shape [{},{}]", to_text(mask),
         to_text(k), k.axis(0).text(), k.axis(1).text());
}

void check_packed(const OpCall& call, std::size_t first) {
  const Type& q = call.input(first + kQuery);
  const Type& k = call.input(first + kKey);
  if (!call.has(first + kOffsets)) fail("attention on packed {} needs offsets", to_text(q));
  if (call.has(first + kMask)) fail("attention on packed {} takes offsets and no mask", to_text(q));
  require_offsets(call.input(first + kOffsets));
  if (q.axis(0) == k.axis(0)) return;
  if (q.axis(0) != num_sequences(call.input(first + kOffsets)))
    fail(
        "packed attention needs as many keys as queries, or one query a sequence: {} and {} differ",
        q.axis(0).text(), k.axis(0).text());
  if (call.attributes().flag("causal"))
    fail("causal attention needs as many keys as queries: {} and {} differ", q.axis(0).text(),
         k.axis(0).text());
}

void check_random(const OpCall& call, std::size_t first) {
  if (call.has(first + kRandom) != call.has(first + kExamples))
    fail("attention needs random and examples together to drop weights");
  if (!call.has(first + kRandom)) return;
  require_dropout("attention dropout", call.attributes().real("dropout"),
                  call.attributes().integer("site"));
  require_random("attention", call.input(first + kRandom));
  const Type& q = call.input(first + kQuery);
  const Type& examples = call.input(first + kExamples);
  require_integer("attention", "examples", examples);
  require_vector("attention", "examples", examples,
                 q.rank() == 3 ? q.axis(0) : num_sequences(call.input(first + kOffsets)));
}

bool has(std::span<const Tensor* const> operands, std::size_t index) {
  return index < operands.size() && operands[index] != nullptr;
}

// What dropout does to the weights of one execution.
struct Dropout {
  DropoutStream stream = {};
  std::uint32_t threshold = 0;
  std::vector<std::int64_t> examples = {};

  void fill(std::span<double> factors, std::size_t sequence, std::int64_t head,
            std::int64_t query) const {
    if (threshold == 0) return std::fill(factors.begin(), factors.end(), 1.0);
    if (head >= 65536 || query >= 65536)
      fail("attention can drop weights of 65536 heads and queries at most, not of query {}", query);
    for (std::size_t j = 0; j < factors.size(); ++j)
      factors[j] = attention_dropout_factor(
          stream, threshold, static_cast<std::uint32_t>(examples[sequence]),
          static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(query),
          static_cast<std::uint32_t>(j));
  }
};

Dropout dropout_of(const AttributeReader& attributes, std::span<const Tensor* const> operands) {
  if (!has(operands, kRandom)) return {};
  return {read_dropout_stream(*operands[kRandom], attributes.integer("site")),
          dropout_threshold(attributes.real("dropout")), read_integers(*operands[kExamples])};
}

// Turns scores into weights in place; -infinity marks a dropped key. False when all are dropped.
bool softmax(std::span<double> scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  if (highest == kLowest) {
    std::fill(scores.begin(), scores.end(), 1.0 / static_cast<double>(scores.size()));
    return false;
  }
  double sum = 0;
  for (double& score : scores) {
    score = score - highest < kLowestAttentionScore ? 0.0 : std::exp(score - highest);
    sum += score;
  }
  for (double& score : scores) score /= sum;
  return true;
}

}  // namespace

std::vector<OperandSpec> attention_operands() {
  return {{.name = "q", .role = OperandRole::Query},   {.name = "k", .role = OperandRole::Key},
          {.name = "v", .role = OperandRole::Content}, {.name = "mask", .optional = true},
          {.name = "offsets", .optional = true},       {.name = "random", .optional = true},
          {.name = "examples", .optional = true}};
}

std::vector<AttributeSpec> attention_attributes() {
  return {
      {.name = "heads", .default_value = 1, .summary = "number of query heads", .required = true},
      {.name = "kv_heads",
       .default_value = 0,
       .summary = "number of key and value heads; 0: as many as query heads"},
      {.name = "scale",
       .default_value = 0.0,
       .summary = "factor of the scores; 0: 1 / sqrt(head size)"},
      {.name = "causal",
       .default_value = false,
       .summary = "whether a query sees only keys up to its own position"},
      {.name = "dropout", .default_value = 0.0, .summary = "share of weights dropped in training"},
      {.name = "site",
       .default_value = 0,
       .summary = "which stream of random numbers dropout draws from"},
      {.name = "weight_format",
       .default_value = std::string(),
       .summary = "number format the weights are rounded to, such as \"int:8\"; empty: none"}};
}

void check_attention_shapes(const OpCall& call, std::size_t first) {
  const Type& q = call.input(first + kQuery);
  const Type& k = call.input(first + kKey);
  const Type& v = call.input(first + kValue);
  if (q.rank() != 2 && q.rank() != 3)
    fail("attention needs queries [B,L,n] or packed [T,n], not {}", to_text(q));
  if (k.rank() != q.rank())
    fail("attention: queries {} and keys {} differ in rank", to_text(q), to_text(k));
  if (k.shape != v.shape) fail("attention: keys {} and values {} differ", to_text(k), to_text(v));
  check_heads(call.attributes(), q, k);
  if (q.rank() == 3)
    check_padded(call, first);
  else
    check_packed(call, first);
}

void check_attention(const OpCall& call, std::size_t first) {
  require_floating("attention", call, first + kQuery);
  check_attention_shapes(call, first);
  const Type& q = call.input(first + kQuery);
  const Type& k = call.input(first + kKey);
  const Type& v = call.input(first + kValue);
  if (k != v) fail("attention: keys {} and values {} differ", to_text(k), to_text(v));
  require_same_dtype("attend with", q, k);
  check_random(call, first);
  AttentionWeightFormat::of(call.attributes());
}

// Two operations a term. The cost of a packed batch is the sum of squared lengths, which is no
// polynomial in T: with L for the longest sequence this is its bound.
Size attention_product_flops(const OpCall& call, std::size_t first) {
  const Type& q = call.input(first + kQuery);
  const Size keys = q.rank() == 3 ? call.input(first + kKey).axis(1) : Size::symbol("L");
  return Size(2) * q.num_elements() * keys;
}

AttentionHeads attention_heads(const AttributeReader& attributes,
                               std::span<const Tensor* const> operands) {
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t q_width = operands[kQuery]->dims().back();
  return {.heads = heads,
          .kv_heads = kv_heads_of(attributes),
          .head_size = q_width / heads,
          .q_width = q_width,
          .k_width = operands[kKey]->dims().back()};
}

AttentionSizes attention_sizes(const AttributeReader& attributes,
                               std::span<const Tensor* const> operands) {
  AttentionSizes sizes{attention_heads(attributes, operands), attributes.real("scale")};
  if (sizes.scale == 0) sizes.scale = 1.0 / std::sqrt(static_cast<double>(sizes.head_size));
  return sizes;
}

std::vector<AttentionSequence> attention_sequences(std::span<const Tensor* const> operands,
                                                   bool causal) {
  std::vector<AttentionSequence> result;
  const Tensor& q = *operands[kQuery];
  const Tensor& k = *operands[kKey];
  if (q.rank() == 3) {
    for (std::int64_t b = 0; b < q.dim(0); ++b)
      result.push_back({b * q.dim(1), q.dim(1), b * k.dim(1), k.dim(1)});
    return result;
  }
  const std::vector<std::int64_t> offsets = read_offsets(*operands[kOffsets], k.dim(0));
  // One query a sequence is its first token's. As many tokens as sequences look like that too: it
  // is the same when every sequence has one token, and nobody can tell when some have none.
  const bool only_first = q.dim(0) != k.dim(0);
  if (!only_first && !causal && std::ssize(offsets) == k.dim(0) + 1)
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
      if (offsets[s] == offsets[s + 1])
        fail(
            "attention of {} queries and {} keys in as many sequences: sequence {} is empty, so "
            "whether all tokens ask or the first of each is not known",
            q.dim(0), k.dim(0), s);
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t length = offsets[s + 1] - offsets[s];
    if (only_first)
      result.push_back({static_cast<std::int64_t>(s), 1, offsets[s], length});
    else
      result.push_back({offsets[s], length, offsets[s], length});
  }
  return result;
}

void for_each_attention_row(const AttributeReader& attributes,
                            std::span<const Tensor* const> operands,
                            const std::function<void(const AttentionRow&)>& visit) {
  const AttentionSizes sizes = attention_sizes(attributes, operands);
  const std::vector<double> q = read_elements(*operands[kQuery]);
  const std::vector<double> k = read_elements(*operands[kKey]);
  const auto score = [&](std::int64_t query, std::int64_t key) {
    double sum = 0;
    for (std::int64_t d = 0; d < sizes.head_size; ++d)
      sum += q[static_cast<std::size_t>(query + d)] * k[static_cast<std::size_t>(key + d)];
    return sum * sizes.scale;
  };
  for_each_attention_row(attributes, operands, score, visit);
}

void for_each_attention_row(const AttributeReader& attributes,
                            std::span<const Tensor* const> operands,
                            const std::function<double(std::int64_t, std::int64_t)>& score,
                            const std::function<void(const AttentionRow&)>& visit) {
  const AttentionHeads sizes = attention_heads(attributes, operands);
  const bool causal = attributes.flag("causal");
  const std::vector<double> mask =
      has(operands, kMask) ? read_elements(*operands[kMask]) : std::vector<double>{};
  const std::vector<AttentionSequence> sequences = attention_sequences(operands, causal);
  const Dropout dropout = dropout_of(attributes, operands);
  const std::optional<AttentionWeightFormat> format = AttentionWeightFormat::of(attributes);

  std::vector<double> weights, rounded, factors;
  std::vector<std::uint8_t> keep;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const AttentionSequence& sequence = sequences[s];
    if (sequence.num_keys == 0) continue;
    weights.resize(static_cast<std::size_t>(sequence.num_keys));
    factors.resize(weights.size());
    keep.resize(weights.size());
    for (std::int64_t h = 0; h < sizes.heads; ++h) {
      const std::int64_t kv_head = h / (sizes.heads / sizes.kv_heads);
      const std::int64_t first_key = sequence.first_key * sizes.k_width + kv_head * sizes.head_size;
      for (std::int64_t i = 0; i < sequence.num_queries; ++i) {
        const std::int64_t query = (sequence.first_query + i) * sizes.q_width + h * sizes.head_size;
        for (std::int64_t j = 0; j < sequence.num_keys; ++j) {
          const bool is_kept =
              !(causal && j > i) &&
              (mask.empty() || mask[static_cast<std::size_t>(sequence.first_key + j)] != 0);
          keep[static_cast<std::size_t>(j)] = is_kept ? 1 : 0;
          weights[static_cast<std::size_t>(j)] =
              is_kept ? score(query, first_key + j * sizes.k_width) : kLowest;
        }
        const bool sees_keys = softmax(weights);
        dropout.fill(factors, s, h, i);
        rounded = weights;
        if (format) format->round_by_definition(rounded, keep);
        visit({query, first_key, weights, rounded, factors, !sees_keys});
      }
    }
  }
}

// Packed, there are no padding keys left to mask: offsets say what belongs together.
Value pack_attention(Graph& graph, NodeId node, const PackedSequences& sequences) {
  int num_packed = 0;
  for (const std::size_t operand : {kQuery, kKey, kValue})
    num_packed += is_packed(graph.type(graph.input(node, operand)), sequences) ? 1 : 0;
  // Rows of a fixed length, such as the patches of images, stay as they are.
  if (num_packed == 0) return repeat_packed(graph, node, graph.attributes(node));
  if (num_packed != 3) refuse_to_pack(graph, node, "only some of its operands hold tokens");
  std::vector<Value> inputs = graph.inputs(node);
  inputs.resize(std::max(inputs.size(), kOffsets + 1), kNone);
  inputs[kMask] = kNone;
  inputs[kOffsets] = sequences.offsets;
  return add_packed(graph, node,
                    {.name = {},
                     .op = graph.op(node).name,
                     .inputs = std::move(inputs),
                     .attributes = graph.attributes(node)});
}

}  // namespace lathe::ops
