#include "lathe/engine/cpu/bf16_values.h"

namespace lathe::engine {

bool is_bf16_result(const Graph& graph, Value value) {
  while (graph.op(value.node).is_alias) value = graph.input(value.node, 0);
  if (graph.is(value.node, "fused_linear"))
    return graph.attribute(value.node).text("activation") == "none" &&
           (graph.inputs(value.node).size() < 4 || graph.input(value.node, 3).is_none());
  for (const char* const op :
       {"linear", "linear_input_gradient", "matmul", "attention", "attention_gradient"})
    if (graph.is(value.node, op)) return true;
  return false;
}

}  // namespace lathe::engine
