#include "lathe/experiment/diff.h"

#include <cmath>
#include <optional>

#include "lathe/core/select_outputs.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::experiment {
namespace {

// What the integers of a value are worth, for each element of its last axis or for all; 1 for a
// float. Ops that move or choose integers say nothing of their own: their operand's scale counts.
std::optional<std::vector<double>> worth(const Graph& graph, Value value) {
  const Type& type = graph.type(value);
  if (is_floating(type.dtype)) return std::vector{1.0};
  const Op& op = graph.op(value.node);
  if (op.is_source || graph.inputs(value.node).empty()) return std::nullopt;
  for (const AttributeSpec& attribute : op.attributes) {
    if (attribute.name != ops::kScale || kind_of(attribute.default_value) != AttributeKind::Reals)
      continue;
    std::vector<double> scale = graph.attribute(value.node).reals(ops::kScale);
    const bool fits =
        scale.size() == 1 || (!scale.empty() && type.rank() > 0 &&
                              type.axis(-1) == Size(static_cast<std::int64_t>(scale.size())));
    return fits ? std::optional(std::move(scale)) : std::nullopt;
  }
  if (op.name == "embedding" || op.name == "argmax") return std::nullopt;
  return worth(graph, graph.input(value.node, 0));
}

struct Pair {
  NodeDifference difference;
  std::vector<double> worth_a, worth_b;
  double squares = 0, error_squares = 0, unequal = 0;
};

// The graph that gives the values of these nodes and nothing else, each under its own name.
Graph watched(Graph graph, const std::vector<Pair>& pairs) {
  for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
  std::vector<std::string> names;
  for (const Pair& pair : pairs) {
    names.push_back(pair.difference.node);
    graph.set_output(names.back(), {graph.at(names.back()), 0});
  }
  return select_outputs(std::move(graph), names);
}

Feed needed(const Graph& graph, const Feed& feed) {
  Feed result;
  for (const NodeId id : graph.nodes_of("input")) {
    const auto found = feed.find(graph.name(id));
    if (found == feed.end()) fail("the data has nothing for input \"{}\"", graph.name(id));
    result[found->first] = found->second;
  }
  return result;
}

void add(Pair& pair, const Tensor& a, const Tensor& b) {
  NodeDifference& total = pair.difference;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    // What stands for a value as a float is a float.
    const auto x = static_cast<double>(
        static_cast<float>(a.at(i) * pair.worth_a[index % pair.worth_a.size()]));
    const auto y = static_cast<double>(
        static_cast<float>(b.at(i) * pair.worth_b[index % pair.worth_b.size()]));
    const double error = std::fabs(x - y);
    total.largest = std::max(total.largest, error);
    pair.squares += x * x;
    pair.error_squares += error * error;
    pair.unequal += x == y ? 0 : 1;
  }
  total.elements += a.num_elements();
}

}  // namespace

Comparison compare_models(const io::Model& a, const io::Model& b, const std::vector<Feed>& feeds,
                          const engine::ExecutionOptions& execution) {
  Comparison result;
  std::vector<Pair> pairs;
  for (const NodeId id : a.graph.topological_order()) {
    const Value value{id, 0};
    // What data decides, and not parameters alone, has a symbolic size.
    if (a.graph.op(id).is_source || a.graph.type(value).num_elements().is_constant()) continue;
    const std::optional<NodeId> other = b.graph.find(a.graph.name(id));
    const auto worth_a = worth(a.graph, value);
    if (!worth_a) continue;
    const auto worth_b = other ? worth(b.graph, {*other, 0}) : std::nullopt;
    if (!worth_b || a.graph.type(value).shape != b.graph.type(Value{*other, 0}).shape) {
      ++result.unmatched;
      continue;
    }
    pairs.push_back({.difference = {.node = a.graph.name(id),
                                    .op = a.graph.op(id).name,
                                    .other_op = b.graph.op(*other).name},
                     .worth_a = *worth_a,
                     .worth_b = *worth_b});
  }
  if (pairs.empty()) fail("the models have no node of the same name and shape");
  const Graph graph_a = watched(a.graph, pairs), graph_b = watched(b.graph, pairs);
  const auto run_a = engine::make_executor(graph_a, a.state, execution);
  const auto run_b = engine::make_executor(graph_b, b.state, execution);
  for (const Feed& feed : feeds) {
    const Feed values_a = run_a->run(needed(graph_a, feed));
    const Feed values_b = run_b->run(needed(graph_b, feed));
    for (Pair& pair : pairs)
      add(pair, values_a.at(pair.difference.node), values_b.at(pair.difference.node));
  }
  for (Pair& pair : pairs) {
    NodeDifference& difference = pair.difference;
    difference.relative =
        pair.error_squares == 0 ? 0 : std::sqrt(pair.error_squares / pair.squares);
    difference.differing =
        difference.elements == 0 ? 0 : pair.unequal / static_cast<double>(difference.elements);
    if (result.first.empty() && difference.largest > 0) result.first = difference.node;
    result.nodes.push_back(difference);
  }
  return result;
}

}  // namespace lathe::experiment
