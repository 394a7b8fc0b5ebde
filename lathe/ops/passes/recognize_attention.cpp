#include <cmath>

#include "lathe/core/pass.h"
#include "lathe/ops/passes/mask_meaning.h"
#include "lathe/ops/passes/written_out.h"

// Attention as other programs write it, on heads [B,h,L,d]: scores of queries and keys, times a
// scale that may stand in front of either, plus masks, a softmax, and the product with the values,
// of which the heads are put side by side again. It becomes `attention` on [B,L,h*d], where heads
// are side by side from the start; what split and turned the heads before is then read by nobody.
namespace lathe::ops {
namespace {

using Axes = std::vector<std::int64_t>;

std::optional<Value> transposed_from(const Graph& graph, Value value, const Axes& axes) {
  if (!graph.is(value.node, "transpose")) return std::nullopt;
  if (graph.attribute(value.node).integers("axes") != axes) return std::nullopt;
  return graph.input(value.node, 0);
}

// The value [B,h,L,d] whose transpose in the last two axes this is.
std::optional<Value> untransposed(Graph& graph, Value value) {
  if (const auto x = transposed_from(graph, value, {0, 1, 3, 2})) return x;
  // Straight from [B,L,h,d]: turned as heads are, without the second turn.
  if (const auto split = transposed_from(graph, value, {0, 2, 3, 1})) {
    const NodeId node =
        graph.insert_after(value.node, {.name = graph.name(value.node) + "/heads",
                                        .op = "transpose",
                                        .inputs = {*split},
                                        .attributes = {{"axes", Axes{0, 2, 1, 3}}}});
    return Value{node, 0};
  }
  // Turned with rows and heads as one axis.
  if (!graph.is(value.node, "reshape")) return std::nullopt;
  const auto flat = transposed_from(graph, graph.input(value.node, 0), {0, 2, 1});
  if (!flat || !graph.is(flat->node, "reshape")) return std::nullopt;
  const Shape& to = graph.type(value).shape;
  const Shape& joined = graph.type(*flat).shape;
  if (to.size() != 4 || joined != Shape{to[0] * to[1], to[3], to[2]}) return std::nullopt;
  const Value source = graph.input(flat->node, 0);
  const Type heads{graph.type(source).dtype, {to[0], to[1], to[3], to[2]}};
  if (graph.type(source) == heads) return source;
  return Value{graph.insert_after(flat->node, {.name = graph.name(flat->node) + "/heads",
                                               .op = "reshape",
                                               .inputs = {source},
                                               .attributes = {},
                                               .types = {heads}}),
               0};
}

// Factors of a product with numbers, of which one value is left.
struct Scaled {
  Value value;
  double factor = 1.0;
};
Scaled unscaled(const Graph& graph, Value value) {
  const Factors factors = factors_of(graph, value);
  if (factors.values.size() != 1) return {value, 1.0};
  return {factors.values[0], factors.number};
}

struct Heads {
  Value side_by_side;  ///< [B,L,h*d]
  std::int64_t count = 0;
};

// [B,h,L,d] as [B,L,h*d]: what it was split from, or put together anew.
std::optional<Heads> join_heads(Graph& graph, Value value, const std::string& name) {
  const Type type = graph.type(value);
  if (type.rank() != 4 || !type.shape[1].is_constant() || !type.shape[3].is_constant())
    return std::nullopt;
  const Shape joined{type.shape[0], type.shape[2], type.shape[1] * type.shape[3]};
  const std::int64_t count = type.shape[1].constant();
  if (const auto split = transposed_from(graph, value, {0, 2, 1, 3}))
    if (graph.is(split->node, "reshape") && graph.type(graph.input(split->node, 0)).shape == joined)
      return Heads{graph.input(split->node, 0), count};
  const NodeId turned =
      graph.insert_after(value.node, {.name = name + "/turned",
                                      .op = "transpose",
                                      .inputs = {value},
                                      .attributes = {{"axes", Axes{0, 2, 1, 3}}}});
  const NodeId flat = graph.insert_after(turned, {.name = name,
                                                  .op = "reshape",
                                                  .inputs = {{turned, 0}},
                                                  .attributes = {},
                                                  .types = {{type.dtype, joined}}});
  return Heads{{flat, 0}, count};
}

// Keys or values that several heads share, written as a stretched axis; itself where they do not.
Value unshared(const Graph& graph, Value value) {
  if (!graph.is(value.node, "reshape")) return value;
  const Value stretched = graph.input(value.node, 0);
  if (!graph.is(stretched.node, "broadcast_to")) return value;
  const Value apart = graph.input(stretched.node, 0);
  if (!graph.is(apart.node, "reshape")) return value;
  const Value heads = graph.input(apart.node, 0);
  const Shape& from = graph.type(heads).shape;
  const Shape& spread = graph.type(apart).shape;
  const Shape& wide = graph.type(stretched).shape;
  const Shape& to = graph.type(value).shape;
  if (from.size() != 4 || to.size() != 4 ||
      spread != Shape{from[0], from[1], Size(1), from[2], from[3]} || wide.size() != 5)
    return value;
  if (wide != Shape{from[0], from[1], wide[2], from[2], from[3]} ||
      to != Shape{from[0], from[1] * wide[2], from[2], from[3]})
    return value;
  return heads;
}

struct Scores {
  Value queries, keys;  ///< heads [B,h,L,d]
  double scale = 1.0;
  MaskMeaning mask;
};

// Peels masks and scales off the scores down to the product.
std::optional<Scores> find_scores(Graph& graph, Value value) {
  Scores scores;
  scores.mask = {.kept = 0.0, .hidden = 0.0};
  for (;;) {
    const Scaled scaled = unscaled(graph, value);
    scores.scale *= scaled.factor;
    value = scaled.value;
    if (graph.is(value.node, "matmul")) break;
    if (!graph.is(value.node, "add") || scores.scale != 1.0) return std::nullopt;
    bool is_found = false;
    for (const std::size_t i : {1, 0}) {
      const std::optional<MaskMeaning> mask = meaning_of_mask(graph, graph.input(value.node, i));
      if (!mask || mask->kept != 0) continue;
      constexpr double kMasked = -1000.0;
      if (!mask->is_uniform() && mask->hidden > kMasked) return std::nullopt;
      if (!scores.mask.keys.is_none() && !mask->keys.is_none() && scores.mask.keys != mask->keys)
        return std::nullopt;
      if (!mask->keys.is_none()) scores.mask.keys = mask->keys;
      scores.mask.is_causal = scores.mask.is_causal || mask->is_causal;
      value = graph.input(value.node, 1 - i);
      is_found = true;
      break;
    }
    if (!is_found) return std::nullopt;
  }
  const AttributeReader attributes = graph.attribute(value.node);
  if (attributes.flag("transpose_a")) return std::nullopt;
  const Scaled queries = unscaled(graph, graph.input(value.node, 0));
  const Scaled keys = unscaled(graph, graph.input(value.node, 1));
  scores.scale *= queries.factor * keys.factor;
  scores.queries = queries.value;
  scores.keys = keys.value;
  if (!attributes.flag("transpose_b")) {
    const std::optional<Value> turned = untransposed(graph, keys.value);
    if (!turned) return std::nullopt;
    scores.keys = *turned;
  }
  return scores;
}

// softmax(x) of the last axis, or 0 where that is NaN.
std::optional<Value> softmax_operand(const Graph& graph, Value value) {
  if (graph.is(value.node, "where")) {
    const Value test = graph.input(value.node, 0);
    if (!graph.is(test.node, "is_nan") || number_of(graph, graph.input(value.node, 1)) != 0.0 ||
        graph.input(test.node, 0) != graph.input(value.node, 2))
      return std::nullopt;
    value = graph.input(value.node, 2);
  }
  if (!graph.is(value.node, "softmax")) return std::nullopt;
  const std::int64_t axis = graph.attribute(value.node).integer("axis");
  if (axis != -1 && axis != static_cast<std::int64_t>(graph.type(value).rank()) - 1)
    return std::nullopt;
  return graph.input(value.node, 0);
}

// The node, a product of weights and values, as attention; nullopt where it is something else.
std::optional<Value> make_attention(Graph& graph, NodeId product) {
  const AttributeReader attributes = graph.attribute(product);
  if (attributes.flag("transpose_a") || attributes.flag("transpose_b")) return std::nullopt;
  if (graph.types(product)[0].rank() != 4) return std::nullopt;
  const std::optional<Value> raw = softmax_operand(graph, graph.input(product, 0));
  if (!raw) return std::nullopt;
  const std::optional<Scores> scores = find_scores(graph, *raw);
  if (!scores) return std::nullopt;
  const Value keys = unshared(graph, scores->keys);
  const Value values = unshared(graph, graph.input(product, 1));
  if (graph.type(keys).rank() != 4 || graph.type(values).shape != graph.type(keys).shape)
    return std::nullopt;
  // What is later is known only of as many keys as queries.
  if (scores->mask.is_causal && graph.type(scores->queries).shape[2] != graph.type(keys).shape[2])
    return std::nullopt;
  const std::string name = graph.name(product);
  const std::optional<Heads> q = join_heads(graph, scores->queries, name + "/queries");
  const std::optional<Heads> k = join_heads(graph, keys, name + "/keys");
  const std::optional<Heads> v = join_heads(graph, values, name + "/values");
  if (!q || !k || !v || k->count == 0 || q->count % k->count != 0) return std::nullopt;
  const Type query = graph.type(scores->queries);
  if (!(scores->scale > 0) || query.shape[3] != graph.type(keys).shape[3]) return std::nullopt;
  Attributes made{{"heads", q->count}};
  if (k->count != q->count) made["kv_heads"] = k->count;
  if (scores->mask.is_causal) made["causal"] = true;
  const double usual = 1.0 / std::sqrt(static_cast<double>(query.shape[3].constant()));
  if (!is_about(scores->scale, usual)) made["scale"] = scores->scale;
  std::vector<Value> operands{q->side_by_side, k->side_by_side, v->side_by_side};
  if (!scores->mask.keys.is_none()) {
    // The ids' mask itself, not its truth values.
    Value mask = scores->mask.keys;
    while (graph.is(mask.node, "cast") && !is_floating(graph.type(graph.input(mask.node, 0)).dtype))
      mask = graph.input(mask.node, 0);
    operands.push_back(mask);
  }
  return Value{graph.insert_before(product, {.name = name + "/attention",
                                             .op = "attention",
                                             .inputs = std::move(operands),
                                             .attributes = std::move(made)}),
               0};
}

int recognize_attention(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.topological_order()) {
    if (!graph.has(id) || !graph.is(id, "matmul")) continue;
    const std::optional<Value> attention = make_attention(graph, id);
    if (!attention) continue;
    // Readers want heads first; those who put them side by side find them so (merge-heads below).
    const Type type = graph.types(id)[0];
    const NodeId split = graph.insert_before(
        id,
        {.name = graph.name(id) + "/split",
         .op = "reshape",
         .inputs = {*attention},
         .attributes = {},
         .types = {{type.dtype, {type.shape[0], type.shape[2], type.shape[1], type.shape[3]}}}});
    const NodeId turned = graph.insert_before(id, {.name = graph.name(id) + "/heads",
                                                   .op = "transpose",
                                                   .inputs = {{split, 0}},
                                                   .attributes = {{"axes", Axes{0, 2, 1, 3}}}});
    graph.replace_all_uses({id, 0}, {turned, 0});
    ++changed;
  }
  // A transpose of a transpose back is nothing.
  for (const NodeId id : graph.topological_order()) {
    const auto inner = transposed_from(graph, {id, 0}, {0, 2, 1, 3});
    if (!inner) continue;
    const auto source = transposed_from(graph, *inner, {0, 2, 1, 3});
    if (source) graph.replace_all_uses({id, 0}, *source);
  }
  if (changed > 0) run_pass("remove-dead-nodes", graph);
  return changed;
}

const Register recognize_attention_pass{Pass{
    .name = "recognize-attention",
    .summary = "make one op of attention that is written out in products and a softmax",
    .run = recognize_attention,
}};

}  // namespace
}  // namespace lathe::ops
