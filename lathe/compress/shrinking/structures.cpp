#include "lathe/compress/shrinking/structures.h"

#include <algorithm>
#include <set>

#include "lathe/compress/layers.h"
#include "lathe/compress/pruning/feature_flow.h"
#include "lathe/core/role.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

bool has_single_element(const Graph& graph, Value value) {
  const Size elements = graph.type(value).num_elements();
  return elements.is_constant() && elements.constant() == 1;
}

class StructureFinder {
 public:
  explicit StructureFinder(const Graph& graph) : graph_(graph), order_(graph.topological_order()) {
    for (const Layer& layer : find_layers(graph))
      if (ops::result_axis(graph, layer.node) == -1) layers_.insert(layer.node);
  }

  Structures run() {
    Structures result;
    for (const NodeId id : order_) {
      if (find_operand(graph_, id, OperandRole::Query)) {
        try {
          result.found.push_back(attention(id));
        } catch (const UserError& error) {
          result.refused.push_back(
              fmt::format("attention \"{}\": {}", graph_.name(id), error.message()));
        }
      } else if (layers_.contains(id) && !done_.contains(id)) {
        neurons(id, result.found);
      }
    }
    return result;
  }

 private:
  void neurons(NodeId layer, std::vector<Structure>& found) {
    const Size width = graph_.types(layer)[0].axis(-1);
    const std::optional<FeatureFlow> flow = trace_features(graph_, layer);
    if (!flow || flow->readers.empty() || !width.is_constant()) return;
    Structure structure{.name = graph_.name(layer), .attention = {}, .features = width.constant()};
    std::set<NodeId> between;
    const std::set<NodeId> readers(flow->readers.begin(), flow->readers.end());
    for (const NodeId maker : flow->makers) {
      structure.makers.push_back({maker});
      done_.insert(maker);
      follow(maker, readers, between);
    }
    structure.readers = flow->readers;
    structure.between = ordered(between);
    found.push_back(std::move(structure));
  }

  Structure attention(NodeId id) {
    Structure structure{.name = graph_.name(id), .attention = id};
    const Size width = graph_.types(id)[0].axis(-1);
    if (!width.is_constant()) fail("its features have no constant number");
    structure.features = width.constant();
    structure.heads = graph_.attribute(id).integer("heads");
    structure.shared_heads = graph_.attribute(id).integer("kv_heads");
    if (structure.shared_heads == 0) structure.shared_heads = structure.heads;
    structure.head_size = structure.features / structure.heads;

    std::set<NodeId> between{id};
    for (const OperandRole role : {OperandRole::Query, OperandRole::Key, OperandRole::Content})
      collect_makers(graph_.input(id, operand_index(graph_, id, role)), 0, role, structure,
                     between);
    for (const FeatureMaker& maker : structure.makers) require_private(maker.layer, between);
    for (const NodeId node : between)
      if (node != id) require_private(node, between);
    const std::optional<std::vector<NodeId>> readers = trace_readers(graph_, id);
    if (!readers) fail("not only layers read what it gives");
    structure.readers = *readers;
    follow(id, {readers->begin(), readers->end()}, between);
    structure.between = ordered(between);
    return structure;
  }

  // The layers that the features of a value come from, `first` being the place of feature 0 in it.
  // Returns one of them.
  FeatureMaker collect_makers(Value value, std::int64_t first, OperandRole role,
                              Structure& structure, std::set<NodeId>& between) {
    const NodeId id = value.node;
    if (layers_.contains(id)) {
      structure.makers.push_back({id, first, role});
      return structure.makers.back();
    }
    between.insert(id);
    if (graph_.is(id, "split")) {
      std::int64_t offset = 0;
      const std::vector<std::int64_t> sizes = graph_.attribute(id).integers("sizes");
      for (std::size_t i = 0; i < static_cast<std::size_t>(value.index); ++i) offset += sizes[i];
      const std::int64_t axis = graph_.attribute(id).integer("axis");
      if (axis != -1 && axis + 1 != static_cast<std::int64_t>(graph_.types(id)[0].rank()))
        refuse(id, role);
      FeatureMaker source =
          collect_makers(graph_.input(id, 0), first + offset, role, structure, between);
      source.first -= first + offset;
      structure.passages.push_back({id, source});
      source.first += first + offset;
      return source;
    }
    if (graph_.is(id, "rope")) {
      const FeatureMaker source =
          collect_makers(graph_.input(id, 0), first, role, structure, between);
      structure.passages.push_back({id, source});
      return source;
    }
    if (!keeps_features(graph_, id)) refuse(id, role);
    std::optional<FeatureMaker> source;
    const std::size_t operands = graph_.is(id, "quantize") ? 1 : graph_.inputs(id).size();
    for (std::size_t i = 0; i < operands; ++i) {
      const Value operand = graph_.inputs(id)[i];
      if (operand.is_none() || has_single_element(graph_, operand)) continue;
      if (graph_.type(operand).axis(-1) != graph_.type(value).axis(-1)) refuse(id, role);
      source = collect_makers(operand, first, role, structure, between);
      if (graph_.op(id).is_identity_in_inference) break;
    }
    if (!source) refuse(id, role);
    return *source;
  }

  [[noreturn]] void refuse(NodeId id, OperandRole role) const {
    fail("its {} comes from \"{}\" ({}), not from layers alone", lathe::name(role), graph_.name(id),
         graph_.op(id).name);
  }

  // Nobody but the attention, and what leads to it, may read a node.
  void require_private(NodeId id, const std::set<NodeId>& between) const {
    for (const Use& use : graph_.uses(id))
      if (use.kind != Use::Kind::Operand || !between.contains(use.user))
        fail("\"{}\" is read by others too", graph_.name(id));
  }

  // Collects what lies between a node and the layers that read its features.
  void follow(NodeId id, const std::set<NodeId>& readers, std::set<NodeId>& between) const {
    for (const NodeId user : graph_.users(id))
      if (!readers.contains(user) && between.insert(user).second) follow(user, readers, between);
  }

  std::vector<NodeId> ordered(const std::set<NodeId>& nodes) const {
    std::vector<NodeId> result;
    for (const NodeId id : order_)
      if (nodes.contains(id)) result.push_back(id);
    return result;
  }

  const Graph& graph_;
  const std::vector<NodeId> order_;
  std::set<NodeId> layers_, done_;
};

}  // namespace

Structures find_structures(const Graph& graph) {
  return StructureFinder(graph).run();
}

}  // namespace lathe::compress
