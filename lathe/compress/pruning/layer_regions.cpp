#include "lathe/compress/pruning/layer_regions.h"

#include "lathe/compress/layers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/parameters.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

// The parameter that an operand of a layer leads back to; no node where that is none.
NodeId state_of(const Graph& graph, NodeId layer, OperandRole role) {
  return weight_state(graph, graph.input(layer, operand_index(graph, layer, role)));
}

GranulePart whole(const Graph& graph, NodeId layer) {
  const NodeId state = state_of(graph, layer, OperandRole::Weight);
  const Type& type = graph.types(state)[0];
  const std::int64_t axis =
      ops::simplified_axis(static_cast<std::int64_t>(type.rank()), ops::weight_axis(graph, layer));
  const std::int64_t columns = ops::matrix_type("prune", type, axis).axis(-1).constant();
  const std::int64_t rows = columns == 0 ? 0 : type.num_elements().constant() / columns;
  return {.state = graph.name(state),
          .matrix_rows = rows,
          .matrix_columns = columns,
          .axis = axis,
          .rows = rows,
          .columns = columns,
          .tile_rows = rows,
          .tile_columns = columns};
}

}  // namespace

bool has_own_parameters(const Graph& graph, NodeId layer) {
  const Parameters parameters(graph);
  for (const OperandRole role : {OperandRole::Weight, OperandRole::Bias}) {
    if (!find_operand(graph, layer, role)) continue;
    const NodeId state = state_of(graph, layer, role);
    if (state.index < 0) return false;
    for (const Use& use : working_uses(graph, parameters, state))
      if (use.kind != Use::Kind::Operand || use.user != layer) return false;
  }
  return true;
}

std::vector<GranulePart> output_parts(const Graph& graph, NodeId layer, std::int64_t first,
                                      std::int64_t count, std::int64_t tile) {
  GranulePart weight = whole(graph, layer);
  weight.row = first;
  weight.rows = count;
  weight.tile_rows = tile;
  std::vector<GranulePart> parts{weight};
  if (!find_operand(graph, layer, OperandRole::Bias)) return parts;
  const NodeId bias = state_of(graph, layer, OperandRole::Bias);
  parts.push_back({.state = graph.name(bias),
                   .matrix_rows = 1,
                   .matrix_columns = weight.matrix_rows,
                   .rows = 1,
                   .column = first,
                   .columns = count,
                   .tile_columns = tile});
  return parts;
}

GranulePart input_part(const Graph& graph, NodeId layer, std::int64_t tile) {
  GranulePart weight = whole(graph, layer);
  weight.tile_columns = tile;
  return weight;
}

}  // namespace lathe::compress
