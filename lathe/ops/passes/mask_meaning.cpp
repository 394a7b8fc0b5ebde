#include "lathe/ops/passes/mask_meaning.h"

#include "lathe/ops/passes/written_out.h"

namespace lathe::ops {
namespace {

// A mask that hides more than this far below every score hides all the way: weights underflow
// at 44.
constexpr double kFar = -1000.0;

MaskMeaning uniform(double number) {
  return {.kept = number, .hidden = number};
}

// Counting 0, 1, .. along one axis of an array of up to four, counted from the end; nullopt where
// it is something else.
std::optional<int> counted_axis(const Graph& graph, Value value) {
  while (graph.is(value.node, "broadcast_to")) value = graph.input(value.node, 0);
  const Type& type = graph.type(value);
  Value range = value;
  if (graph.is(range.node, "reshape")) range = graph.input(range.node, 0);
  if (!graph.is(range.node, "range") || graph.attribute(range.node).real("first") != 0.0 ||
      graph.attribute(range.node).real("step") != 1.0)
    return std::nullopt;
  std::optional<int> axis;
  for (std::size_t i = 0; i < type.rank(); ++i) {
    if (type.shape[i] == Size(1)) continue;
    if (axis) return std::nullopt;
    axis = static_cast<int>(type.rank() - i);
  }
  return axis;
}

// A key that is not later than the query, whichever way it is written.
std::optional<MaskMeaning> of_places(const Graph& graph, Value a, Value b, bool is_less_equal) {
  const std::optional<int> left = counted_axis(graph, a), right = counted_axis(graph, b);
  const bool is_key_first = left == 1 && right == 2;
  const bool is_query_first = left == 2 && right == 1;
  if ((is_less_equal && is_key_first) || (!is_less_equal && is_query_first))
    return MaskMeaning{.is_causal = true};
  return std::nullopt;
}

// [B,L] made [B,1,1,L]: one truth a key.
std::optional<MaskMeaning> of_keys(const Graph& graph, Value value) {
  const Value source = graph.input(value.node, 0);
  const Type& type = graph.type(value);
  const Type& from = graph.type(source);
  if (from.rank() != 2 || type.rank() != 4 || is_floating(from.dtype)) return std::nullopt;
  if (type.shape != Shape{from.shape[0], Size(1), Size(1), from.shape[1]}) return std::nullopt;
  return MaskMeaning{.keys = source};
}

std::optional<MaskMeaning> both(const MaskMeaning& a, const MaskMeaning& b, double kept,
                                double hidden) {
  if (!a.keys.is_none() && !b.keys.is_none() && a.keys != b.keys) return std::nullopt;
  return MaskMeaning{.keys = a.keys.is_none() ? b.keys : a.keys,
                     .is_causal = a.is_causal || b.is_causal,
                     .kept = kept,
                     .hidden = hidden};
}

std::optional<MaskMeaning> joined(const MaskMeaning& a, const MaskMeaning& b) {
  if (a.is_uniform()) return a.kept != 0 ? std::optional(b) : std::optional(uniform(0));
  if (b.is_uniform()) return joined(b, a);
  if (a.kept != 1 || a.hidden != 0 || b.kept != 1 || b.hidden != 0) return std::nullopt;
  return both(a, b, 1, 0);
}

template <typename Function>
std::optional<MaskMeaning> mapped(MaskMeaning meaning, Function&& function) {
  meaning.kept = function(meaning.kept);
  meaning.hidden = function(meaning.hidden);
  return meaning;
}

// Numbers on both sides of an arithmetic op: one is the same everywhere, or both only hide.
std::optional<MaskMeaning> of_sum(const MaskMeaning& a, const MaskMeaning& b) {
  if (a.is_uniform()) return mapped(b, [&](double x) { return x + a.kept; });
  if (b.is_uniform()) return mapped(a, [&](double x) { return x + b.kept; });
  if (a.kept == 0 && b.kept == 0 && a.hidden <= kFar && b.hidden <= kFar)
    return both(a, b, 0, std::max(a.hidden, b.hidden));
  return std::nullopt;
}

std::optional<MaskMeaning> of_choice(const MaskMeaning& condition, const MaskMeaning& a,
                                     const MaskMeaning& b) {
  if (condition.is_uniform()) return condition.kept != 0 ? a : b;
  if (a.is_uniform() && b.is_uniform())
    return mapped(condition, [&](double x) { return x != 0 ? a.kept : b.kept; });
  return std::nullopt;
}

}  // namespace

std::optional<MaskMeaning> meaning_of_mask(const Graph& graph, Value mask) {
  if (const std::optional<double> number = number_of(graph, mask)) return uniform(*number);
  const NodeId node = mask.node;
  const auto operand = [&](std::size_t index) {
    return meaning_of_mask(graph, graph.input(node, index));
  };
  const std::string& op = graph.op(node).name;
  if (op == "reshape") return of_keys(graph, mask);
  if (op == "broadcast_to") return operand(0);
  if (op == "less_equal" || op == "greater_equal")
    return of_places(graph, graph.input(node, 0), graph.input(node, 1), op == "less_equal");
  if (op == "cast") {
    const std::optional<MaskMeaning> x = operand(0);
    if (!x || graph.type(mask).dtype != DType::Bool) return x;
    return mapped(*x, [](double value) { return value != 0 ? 1.0 : 0.0; });
  }
  if (op == "logical_not") {
    const std::optional<MaskMeaning> x = operand(0);
    if (!x) return std::nullopt;
    return mapped(*x, [](double value) { return value != 0 ? 0.0 : 1.0; });
  }
  if (op == "where") {
    const auto condition = operand(0), a = operand(1), b = operand(2);
    if (!condition || !a || !b) return std::nullopt;
    return of_choice(*condition, *a, *b);
  }
  if (op != "logical_and" && op != "add" && op != "sub" && op != "mul") return std::nullopt;
  const auto a = operand(0), b = operand(1);
  if (!a || !b) return std::nullopt;
  if (op == "logical_and") return joined(*a, *b);
  if (op == "add") return of_sum(*a, *b);
  if (op == "sub") return of_sum(*a, *mapped(*b, [](double x) { return -x; }));
  if (a->is_uniform()) return mapped(*b, [&](double x) { return x * a->kept; });
  if (b->is_uniform()) return mapped(*a, [&](double x) { return x * b->kept; });
  return std::nullopt;
}

}  // namespace lathe::ops
