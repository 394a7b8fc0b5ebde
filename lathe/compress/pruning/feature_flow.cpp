#include "lathe/compress/pruning/feature_flow.h"

#include <algorithm>
#include <set>

#include "lathe/compress/layers.h"
#include "lathe/core/role.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

bool is_layer(const Graph& graph, NodeId id) {
  const std::vector<Layer> layers = find_layers(graph);
  return std::ranges::find(layers, id, &Layer::node) != layers.end() &&
         ops::result_axis(graph, id) == -1;
}

// A single number, which is the same for all features.
bool is_scalar(const Graph& graph, Value value) {
  const Size elements = graph.type(value).num_elements();
  return elements.is_constant() && elements.constant() == 1;
}

class Tracer {
 public:
  explicit Tracer(const Graph& graph) : graph_(graph) {
    for (const Layer& layer : find_layers(graph))
      if (ops::result_axis(graph, layer.node) == -1) layers_.insert(layer.node);
  }

  // Whether everything that a node's features touch belongs to the flow.
  bool follow(NodeId start) {
    visit(start);
    while (!open_.empty()) {
      const NodeId id = open_.back();
      open_.pop_back();
      if (!follow_uses(id)) return false;
      if (makers_.contains(id) || id == start) continue;
      if (!follow_operands(id)) return false;
    }
    return true;
  }

  std::vector<NodeId> makers() const { return ordered(makers_); }
  std::vector<NodeId> readers() const { return ordered(readers_); }

 private:
  void visit(NodeId id) {
    if (!seen_.insert(id).second) return;
    if (layers_.contains(id)) makers_.insert(id);
    open_.push_back(id);
  }

  bool follow_uses(NodeId id) {
    if (graph_.types(id).size() != 1) return false;
    for (const Use& use : graph_.uses(id)) {
      if (use.kind != Use::Kind::Operand) return false;
      const bool is_input = operand_role(graph_, use.user, static_cast<std::size_t>(use.operand)) ==
                            OperandRole::Input;
      if (layers_.contains(use.user) && is_input)
        readers_.insert(use.user);
      else if (keeps_features(graph_, use.user) &&
               graph_.types(use.user)[0].axis(-1) == graph_.types(id)[0].axis(-1))
        visit(use.user);
      else
        return false;
    }
    return !graph_.uses(id).empty();
  }

  bool follow_operands(NodeId id) {
    for (std::size_t i = 0; i < graph_.inputs(id).size(); ++i) {
      const Value value = graph_.inputs(id)[i];
      if (value.is_none() || seen_.contains(value.node) || is_scalar(graph_, value)) continue;
      // The scales of a quantizer are for tensors or blocks, not for a feature.
      if (graph_.is(id, "quantize") && i > 0) continue;
      if (value.index != 0 ||
          (!layers_.contains(value.node) && !keeps_features(graph_, value.node)))
        return false;
      visit(value.node);
    }
    return true;
  }

  std::vector<NodeId> ordered(const std::set<NodeId>& nodes) const {
    std::vector<NodeId> result;
    for (const NodeId id : graph_.topological_order())
      if (nodes.contains(id)) result.push_back(id);
    return result;
  }

  const Graph& graph_;
  std::set<NodeId> layers_, seen_, makers_, readers_;
  std::vector<NodeId> open_;
};

}  // namespace

bool keeps_features(const Graph& graph, NodeId id) {
  const Op& op = graph.op(id);
  return op.is_elementwise || op.is_identity_in_inference || graph.is(id, "quantize");
}

std::optional<FeatureFlow> trace_features(const Graph& graph, NodeId layer) {
  Tracer tracer(graph);
  if (!tracer.follow(layer)) return std::nullopt;
  return FeatureFlow{tracer.makers(), tracer.readers()};
}

std::optional<std::vector<NodeId>> trace_readers(const Graph& graph, NodeId node) {
  Tracer tracer(graph);
  if (!tracer.follow(node) || !tracer.makers().empty()) return std::nullopt;
  return tracer.readers();
}

std::optional<FeatureSource> trace_source(const Graph& graph, Value value) {
  FeatureSource source;
  while (!value.is_none()) {
    const NodeId id = value.node;
    source.passed.push_back(id);
    if (is_layer(graph, id)) {
      source.layer = id;
      return source;
    }
    if (graph.is(id, "split")) {
      const auto rank = static_cast<std::int64_t>(graph.types(id)[0].rank());
      const std::int64_t axis = graph.attribute(id).integer("axis");
      if (axis != -1 && axis != rank - 1) return std::nullopt;
      const std::vector<std::int64_t> sizes = graph.attribute(id).integers("sizes");
      for (std::int32_t i = 0; i < value.index; ++i)
        source.first += sizes[static_cast<std::size_t>(i)];
    } else if (!graph.is(id, "rope")) {
      if (!keeps_features(graph, id)) return std::nullopt;
      // Of several operands one is the layer's; the others are single numbers.
      for (std::size_t i = 1; i < graph.inputs(id).size() && !graph.is(id, "quantize"); ++i)
        if (!graph.inputs(id)[i].is_none() && !is_scalar(graph, graph.inputs(id)[i]))
          return std::nullopt;
    }
    value = graph.input(id, 0);
  }
  return std::nullopt;
}

}  // namespace lathe::compress
