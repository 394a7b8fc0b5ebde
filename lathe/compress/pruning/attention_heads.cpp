#include "lathe/compress/pruning/attention_heads.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lathe/compress/pruning/feature_flow.h"
#include "lathe/compress/pruning/layer_regions.h"
#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

// Whether nobody but the attention reads what its operands pass through.
bool is_private(const Graph& graph, NodeId attention, const std::set<NodeId>& passed) {
  return std::ranges::all_of(passed, [&](NodeId id) {
    return std::ranges::all_of(graph.uses(id), [&](const Use& use) {
      return use.kind == Use::Kind::Operand && (use.user == attention || passed.contains(use.user));
    });
  });
}

std::optional<PruningUnit> head_unit(const Graph& graph, NodeId attention) {
  const std::int64_t heads = graph.attribute(attention).integer("heads");
  const std::int64_t shared = graph.attribute(attention).integer("kv_heads");
  const std::int64_t groups = shared == 0 ? heads : shared;
  const auto width = [&](Value value) { return graph.type(value).axis(-1); };
  PruningUnit unit{.name = graph.name(attention), .layers = {}, .parts = {}, .granules = groups};
  std::set<NodeId> passed;
  for (const OperandRole role : {OperandRole::Query, OperandRole::Key, OperandRole::Content}) {
    const Value value = graph.input(attention, operand_index(graph, attention, role));
    const std::optional<FeatureSource> source = trace_source(graph, value);
    if (!source || !width(value).is_constant() || !has_own_parameters(graph, source->layer))
      return std::nullopt;
    passed.insert(source->passed.begin(), source->passed.end());
    const std::int64_t features = width(value).constant();
    for (GranulePart& part :
         output_parts(graph, source->layer, source->first, features, features / groups))
      unit.parts.push_back(std::move(part));
    if (std::ranges::find(unit.layers, source->layer) == unit.layers.end())
      unit.layers.push_back(source->layer);
  }
  const std::optional<std::vector<NodeId>> readers = trace_readers(graph, attention);
  if (!readers || !is_private(graph, attention, passed)) return std::nullopt;
  for (const NodeId reader : *readers) {
    if (!has_own_parameters(graph, reader)) return std::nullopt;
    unit.parts.push_back(input_part(graph, reader, width({attention, 0}).constant() / groups));
    unit.layers.push_back(reader);
  }
  return unit;
}

}  // namespace

std::vector<PruningUnit> find_head_units(const Graph& graph) {
  std::vector<PruningUnit> units;
  for (const NodeId id : graph.topological_order()) {
    if (!find_operand(graph, id, OperandRole::Query)) continue;
    if (std::optional<PruningUnit> unit = head_unit(graph, id)) units.push_back(std::move(*unit));
  }
  return units;
}

}  // namespace lathe::compress
