#include "lathe/core/parameters.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"

// batch_norm(conv2d(x, w, b), ...) scales and shifts each channel by numbers that do not depend on
// x, and so does a convolution with another weight and bias; the same for linear layers. The new
// weight and bias are nodes that states alone decide, computed once for inference. A weight that is
// rounded stays: scaled behind its codes, it would no longer be one that kernels read as codes.
namespace lathe::ops {
namespace {

// A state, or one that a mask is multiplied with.
bool is_plain_weight(const Graph& graph, Value value) {
  if (graph.is(value.node, "state")) return true;
  if (!graph.is(value.node, "mul")) return false;
  for (const Value& factor : graph.inputs(value.node))
    if (!graph.is(factor.node, "state")) return false;
  return true;
}

bool can_fold(const Graph& graph, const Parameters& parameters, NodeId norm) {
  const Value product = graph.input(norm, 0);
  if (!graph.is(product.node, "conv2d") && !graph.is(product.node, "linear")) return false;
  if (graph.uses(product.node).size() != 1) return false;
  // A linear layer's outputs are the last axis and a norm's channels the second.
  if (graph.is(product.node, "linear") && graph.type(product).rank() != 2) return false;
  if (!is_plain_weight(graph, graph.input(product.node, 1))) return false;
  for (std::size_t i = 1; i < 5; ++i)
    if (!graph.is(graph.input(norm, i).node, "state")) return false;
  const std::vector<Value>& operands = graph.inputs(product.node);
  return operands.size() < 3 || operands[2].is_none() || parameters.contains(operands[2]);
}

int fold_batch_norm(Graph& graph) {
  int changed = 0;
  const Parameters parameters(graph);
  for (const NodeId id : graph.topological_order()) {
    if (!graph.is(id, "batch_norm") || !can_fold(graph, parameters, id)) continue;
    const NodeId product = graph.input(id, 0).node;
    const std::string name = graph.name(product);
    const Attributes eps{{"eps", graph.attribute(id).real("eps")}};
    const std::vector<Value> norm = graph.inputs(id);
    const Value old_bias = graph.inputs(product).size() > 2 ? graph.input(product, 2) : kNone;
    const NodeId weight =
        graph.insert_before(id, {.name = name + "/folded_weight",
                                 .op = "folded_weight",
                                 .inputs = {graph.input(product, 1), norm[1], norm[4]},
                                 .attributes = eps});
    const NodeId bias =
        graph.insert_before(id, {.name = name + "/folded_bias",
                                 .op = "folded_bias",
                                 .inputs = {norm[1], norm[2], norm[3], norm[4], old_bias},
                                 .attributes = eps});
    const NodeId folded =
        graph.insert_before(id, {.name = name + "/folded",
                                 .op = graph.op(product).name,
                                 .inputs = {graph.input(product, 0), {weight, 0}, {bias, 0}},
                                 .attributes = graph.attributes(product)});
    graph.replace_all_uses({id, 0}, {folded, 0});
    graph.erase(id);
    graph.erase(product);
    graph.rename(folded, name);
    ++changed;
  }
  return changed;
}

const Register fold_batch_norm_pass{Pass{
    .name = "fold-batch-norm",
    .summary = "make batch norms part of the convolutions and linear layers before them",
    .run = fold_batch_norm,
}};

}  // namespace
}  // namespace lathe::ops
