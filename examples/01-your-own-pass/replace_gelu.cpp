// A transform pass: it rewrites the graph and says how much it changed.
#include <lathe/core/pass.h>
#include <lathe/core/pattern.h>

namespace {

// relu is far cheaper than gelu and close to it away from zero; the model must be fine-tuned after.
// The gelus are left without readers, and remove-dead-nodes takes them away.
int replace_gelu(lathe::Graph& graph) {
  const lathe::Pattern gelu("gelu(x)");
  return lathe::rewrite(graph, gelu, [](lathe::Graph& g, const lathe::Match& match) {
    const lathe::NodeId old = match.nodes.front();
    const lathe::NodeId relu =
        g.insert_before(old, {.name = g.name(old) + "/relu", .op = "relu", .inputs = {match["x"]}});
    return std::optional(lathe::Value{relu, 0});
  });
}

const lathe::Register registration{lathe::Pass{
    .name = "replace-gelu",
    .summary = "compute relu wherever the graph computes gelu",
    .run = replace_gelu,
}};

}  // namespace
