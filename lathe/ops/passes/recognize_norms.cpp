#include "lathe/core/pass.h"
#include "lathe/ops/passes/written_out.h"

// layer_norm and rms_norm as other programs write them: x, centred by its mean or not, divided by
// the root of the mean of its squares with eps, times a weight, plus a bias.
namespace lathe::ops {
namespace {

bool is_last_mean(const Graph& graph, Value value) {
  if (!graph.is(value.node, "mean") || !graph.attribute(value.node).flag("keep")) return false;
  const std::vector<std::int64_t>& axes = graph.attribute(value.node).integers("axes");
  const auto rank = static_cast<std::int64_t>(graph.type(graph.input(value.node, 0)).rank());
  return axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
}

// The value whose squares are averaged: `mean(x * x)` or `mean(pow(x, 2))`.
std::optional<Value> squared_mean(const Graph& graph, Value value) {
  if (!is_last_mean(graph, value)) return std::nullopt;
  const Value square = graph.input(value.node, 0);
  if (graph.is(square.node, "mul") && graph.input(square.node, 0) == graph.input(square.node, 1))
    return graph.input(square.node, 0);
  if (graph.is(square.node, "pow") && number_of(graph, graph.input(square.node, 1)) == 2.0)
    return graph.input(square.node, 0);
  return std::nullopt;
}

struct Normalized {
  Value x;  ///< what is divided by the root of the mean of its squares
  double eps = 0;
};

// sqrt(mean(x * x) + eps).
std::optional<Normalized> root_of_mean(const Graph& graph, Value value) {
  const std::optional<Value> inner = operand_of(graph, value, "sqrt");
  const std::optional<Shifted> shifted = inner ? shifted_of(graph, *inner) : std::nullopt;
  const std::optional<Value> x = shifted ? squared_mean(graph, shifted->value) : std::nullopt;
  if (!x) return std::nullopt;
  return Normalized{*x, shifted->number};
}

// x / root, or x * (1 / root) in either order.
std::optional<Normalized> normalized_of(const Graph& graph, Value value) {
  if (graph.is(value.node, "div")) {
    const std::optional<Normalized> root = root_of_mean(graph, graph.input(value.node, 1));
    if (root && root->x == graph.input(value.node, 0)) return root;
    return std::nullopt;
  }
  if (!graph.is(value.node, "mul")) return std::nullopt;
  for (const std::size_t i : {0, 1}) {
    const Value factor = graph.input(value.node, i);
    std::optional<Value> root = operand_of(graph, factor, "reciprocal");
    if (!root && graph.is(factor.node, "div") &&
        number_of(graph, graph.input(factor.node, 0)) == 1.0)
      root = graph.input(factor.node, 1);
    const std::optional<Normalized> found = root ? root_of_mean(graph, *root) : std::nullopt;
    if (found && found->x == graph.input(value.node, 1 - i)) return found;
  }
  return std::nullopt;
}

// x where `value` is x minus its mean.
std::optional<Value> centred_of(const Graph& graph, Value value) {
  if (!graph.is(value.node, "sub")) return std::nullopt;
  const Value x = graph.input(value.node, 0);
  const Value mean = graph.input(value.node, 1);
  if (!is_last_mean(graph, mean) || graph.input(mean.node, 0) != x) return std::nullopt;
  return x;
}

bool is_vector_of(const Graph& graph, Value value, Value x) {
  const Type& type = graph.type(value);
  return type.rank() == 1 && type.shape[0] == graph.type(x).axis(-1);
}

// The operand of a mul or add that is a vector along the last axis, and the other one.
struct Affine {
  Value x, vector;
};
std::optional<Affine> affine_of(const Graph& graph, Value value, std::string_view op) {
  if (!graph.is(value.node, op)) return std::nullopt;
  for (const std::size_t i : {0, 1}) {
    const Value vector = graph.input(value.node, i);
    const Value x = graph.input(value.node, 1 - i);
    if (graph.type(x).rank() > 1 && is_vector_of(graph, vector, x)) return Affine{x, vector};
  }
  return std::nullopt;
}

void put(Graph& graph, NodeId old, const char* op, std::vector<Value> inputs, double eps) {
  const NodeId node = graph.insert_before(old, {.name = graph.name(old) + "/norm",
                                                .op = op,
                                                .inputs = std::move(inputs),
                                                .attributes = {{"eps", eps}}});
  graph.replace_all_uses({old, 0}, {node, 0});
}

int recognize_norms(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.topological_order()) {
    // With mean and bias.
    if (const auto shifted = affine_of(graph, {id, 0}, "add")) {
      const std::optional<Affine> scaled = affine_of(graph, shifted->x, "mul");
      const std::optional<Normalized> norm =
          scaled ? normalized_of(graph, scaled->x) : std::nullopt;
      const std::optional<Value> x = norm ? centred_of(graph, norm->x) : std::nullopt;
      if (!x) continue;
      put(graph, id, "layer_norm", {*x, scaled->vector, shifted->vector}, norm->eps);
      ++changed;
    }
    if (const auto scaled = affine_of(graph, {id, 0}, "mul")) {
      const std::optional<Normalized> norm = normalized_of(graph, scaled->x);
      if (!norm || centred_of(graph, norm->x)) continue;
      put(graph, id, "rms_norm", {norm->x, scaled->vector}, norm->eps);
      ++changed;
    }
  }
  if (changed > 0) run_pass("remove-dead-nodes", graph);
  return changed;
}

const Register recognize_norms_pass{Pass{
    .name = "recognize-norms",
    .summary = "make one op of layer norms and root-mean-square norms that are written out",
    .run = recognize_norms,
}};

}  // namespace
}  // namespace lathe::ops
