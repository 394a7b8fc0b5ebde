#include "lathe/core/pass.h"
#include "lathe/engine/reference_executor.h"

namespace lathe::engine {
namespace {

// A graph holds no large tensors: a folded value must fit on its line.
constexpr std::int64_t kMostElements = 64;

bool is_small(const Graph& graph, NodeId id) {
  if (graph.types(id).size() != 1) return false;
  const Type& type = graph.types(id)[0];
  if (type.dtype != DType::F32 && type.dtype != DType::I32 && type.dtype != DType::I64)
    return false;
  const Size elements = type.num_elements();
  return elements.is_constant() && elements.constant() <= kMostElements;
}

Tensor constant_value(const Graph& graph, NodeId id) {
  return evaluate_node(graph, id, {}, {})[0];
}

// Operands are folded before their readers, so a chain of constants collapses in one walk.
int fold_constants(Graph& graph) {
  int folded = 0;
  for (const NodeId id : graph.topological_order()) {
    if (graph.op(id).is_source || graph.is(id, "constant") || graph.inputs(id).empty()) continue;
    if (!is_small(graph, id)) continue;
    std::vector<Tensor> operands;
    std::vector<const Tensor*> pointers;
    operands.reserve(graph.inputs(id).size());
    bool all_constant = true;
    for (const Value& value : graph.inputs(id)) {
      if (value.is_none()) {
        pointers.push_back(nullptr);
        continue;
      }
      all_constant = all_constant && graph.is(value.node, "constant");
      if (!all_constant) break;
      operands.push_back(constant_value(graph, value.node));
      pointers.push_back(&operands.back());
    }
    if (!all_constant) continue;
    const Tensor result = evaluate_node(graph, id, pointers, {})[0];
    std::vector<double> values;
    for (std::int64_t i = 0; i < result.num_elements(); ++i) values.push_back(result.at(i));
    const NodeId constant = graph.insert_before(id, {.name = graph.name(id) + "/folded",
                                                     .op = "constant",
                                                     .inputs = {},
                                                     .attributes = {{"values", std::move(values)}},
                                                     .types = graph.types(id)});
    graph.replace_all_uses({id, 0}, {constant, 0});
    graph.erase(id);
    ++folded;
  }
  return folded;
}

const Register registration{Pass{
    .name = "fold-constants",
    .summary = "compute nodes whose operands are constants, where the result fits on a line",
    .run = fold_constants,
}};

}  // namespace
}  // namespace lathe::engine
