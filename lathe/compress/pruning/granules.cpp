#include "lathe/compress/pruning/granules.h"

#include <algorithm>

#include "lathe/compress/lora.h"
#include "lathe/compress/pruning/attention_heads.h"
#include "lathe/compress/pruning/feed_forward_neurons.h"
#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

using Kind = Granularity::Kind;

PruningUnit weight_unit(const Graph& graph, const PrunableWeight& weight,
                        const Granularity& granularity) {
  GranulePart part{.state = weight.state,
                   .matrix_rows = weight.rows,
                   .matrix_columns = weight.columns,
                   .axis = weight.axis,
                   .rows = weight.rows,
                   .columns = weight.columns};
  PruningUnit unit{.name = weight.state, .layers = weight.readers, .parts = {}};
  switch (granularity.kind) {
    case Kind::SomeOfSeveral:
      if (weight.columns % granularity.of != 0)
        fail("layer \"{}\": {} does not divide its {} inputs", graph.name(weight.readers.front()),
             to_text(granularity), weight.columns);
      part.tile_columns = granularity.of;
      unit.kept = granularity.kept;
      break;
    case Kind::Block:
      part.tile_rows = granularity.rows;
      part.tile_columns = granularity.columns;
      break;
    case Kind::Row:
    case Kind::Vocabulary:
      part.tile_columns = std::max<std::int64_t>(1, weight.columns);
      break;
    case Kind::Column:
      part.tile_rows = std::max<std::int64_t>(1, weight.rows);
      break;
    default:
      break;
  }
  unit.granules = part.num_tiles();
  // One granule a line is no choice.
  if (part.num_tile_columns() > 1) unit.lines = unit.granules / part.num_tile_columns();
  unit.parts.push_back(std::move(part));
  return unit;
}

// A table that an input of the graph is looked up in, and not positions or types made inside.
bool is_vocabulary(const Graph& graph, const PrunableWeight& weight) {
  return weight.is_table && std::ranges::any_of(weight.readers, [&](NodeId reader) {
           if (!find_operand(graph, reader, OperandRole::Table)) return false;
           return std::ranges::any_of(graph.inputs(reader), [&](const Value& value) {
             return !value.is_none() && graph.is(value.node, "input");
           });
         });
}

// Whether every weight of a unit is among these; biases go along.
bool is_covered(const PruningUnit& unit, const std::vector<PrunableWeight>& weights) {
  return std::ranges::all_of(unit.layers, [&](NodeId layer) {
    return std::ranges::any_of(weights, [&](const PrunableWeight& weight) {
      return std::ranges::find(weight.readers, layer) != weight.readers.end();
    });
  });
}

std::vector<PruningUnit> weight_units(const Graph& graph,
                                      const std::vector<PrunableWeight>& weights,
                                      const Granularity& granularity) {
  std::vector<PruningUnit> units;
  for (const PrunableWeight& weight : weights)
    if (granularity.kind != Kind::Vocabulary || is_vocabulary(graph, weight))
      units.push_back(weight_unit(graph, weight, granularity));
  if (units.empty() && granularity.kind == Kind::Vocabulary)
    fail("granularity vocabulary: no table that an input is looked up in counts");
  return units;
}

}  // namespace

std::vector<PruningUnit> make_units(const Graph& graph, const std::vector<PrunableWeight>& weights,
                                    const Granularity& granularity) {
  if (is_within_weights(granularity)) return weight_units(graph, weights, granularity);
  Graph base = graph;  // what stands beside a layer has no features of its own
  remove_lora(base);
  const bool is_head = granularity.kind == Kind::Head;
  std::vector<PruningUnit> units = is_head ? find_head_units(base) : find_neuron_units(base);
  std::erase_if(units, [&](const PruningUnit& unit) { return !is_covered(unit, weights); });
  if (units.empty() && is_head)
    fail("granularity head: none of the weights that count belongs to heads of an attention");
  if (units.empty())
    fail(
        "granularity neuron: none of the weights that count belongs to a feed-forward part, two "
        "layers with functions of single elements between them");
  return units;
}

}  // namespace lathe::compress
