#include "lathe/train/find_loss.h"

namespace lathe::train {

Loss find_loss(const Graph& graph) {
  const std::optional<Value> loss = graph.output("loss");
  if (!loss) fail("the model's graph has no loss: it needs the input labels");
  if (!graph.is(loss->node, "div"))
    fail("node \"{}\": a loss must be a sum divided by a count, not {}", graph.name(loss->node),
         graph.op(loss->node).name);
  return {graph.input(loss->node, 0), graph.input(loss->node, 1)};
}

}  // namespace lathe::train
