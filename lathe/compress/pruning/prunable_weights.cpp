#include "lathe/compress/pruning/prunable_weights.h"

#include <algorithm>

#include "lathe/compress/layers.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) { remove_lora(graph_); }

  std::vector<PrunableWeight> run() {
    const std::vector<Layer> layers = find_layers(graph_);
    for (const NodeId id : graph_.topological_order()) {
      const auto layer = std::ranges::find(layers, id, &Layer::node);
      if (layer != layers.end()) take(id, layer->weight, ops::weight_axis(graph_, id), false);
      if (const auto table = find_operand(graph_, id, OperandRole::Table))
        take(id, *table, -1, true);
    }
    return std::move(found_);
  }

 private:
  void take(NodeId reader, std::size_t operand, std::int64_t axis, bool is_table) {
    const NodeId state = weight_state(graph_, graph_.input(reader, operand));
    if (state.index < 0) return;
    const std::string& name = graph_.name(state);
    auto weight = std::ranges::find(found_, name, &PrunableWeight::state);
    if (weight == found_.end()) {
      const Type& type = graph_.types(state)[0];
      const auto simple = ops::simplified_axis(static_cast<std::int64_t>(type.rank()), axis);
      const std::int64_t columns = ops::matrix_type("prune", type, simple).axis(-1).constant();
      weight = found_.insert(found_.end(),
                             {.state = name,
                              .readers = {},
                              .rows = columns == 0 ? 0 : type.num_elements().constant() / columns,
                              .columns = columns,
                              .axis = simple});
    }
    weight->is_table = weight->is_table || is_table;
    if (std::ranges::find(weight->readers, reader) == weight->readers.end())
      weight->readers.push_back(reader);
  }

  Graph graph_;  // a copy: its nodes have the same numbers
  std::vector<PrunableWeight> found_;
};

}  // namespace

std::vector<PrunableWeight> find_prunable(const Graph& graph) {
  return Finder(graph).run();
}

}  // namespace lathe::compress
