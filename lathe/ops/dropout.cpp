#include <cstring>

#include "lathe/core/graph.h"
#include "lathe/ops/operand_checks.h"

// dropout(x) {rate, site}: in training, each element is 0 with probability `rate` and x / (1 -
// rate) otherwise; the site says which stream of random numbers decides. In inference, which is
// what this reference computes, it is x.
namespace lathe::ops::dropout {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("dropout", call, 0);
  const double rate = call.attributes().real("rate");
  if (!(rate >= 0 && rate < 1)) fail("dropout rate {} must be at least 0 and below 1", rate);
  return {{.dtype = call.input(0).dtype, .shape = call.input(0).shape}};
}

void reference(const KernelCall& call) {
  Tensor& y = call.outputs[0];
  std::memcpy(y.mutable_bytes(), call.input(0).bytes(), static_cast<std::size_t>(y.num_bytes()));
}

// Of what it computes, which is x: a graph to be trained has random_dropout in its place.
std::vector<Value> gradient(Graph&, NodeId, std::span<const Value> gradients) {
  return {gradients[0]};
}

const Register registration{Op{
    .name = "dropout",
    .summary = "zero a share of the elements in training and scale the rest; x in inference",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "rate", .default_value = 0.1, .summary = "share of elements dropped"},
                   {.name = "site",
                    .default_value = 0,
                    .summary = "which stream of random numbers it draws from"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .is_identity_in_inference = true,
    .dropout_attribute = "rate",
    .is_per_token = true,
    .examples = {"dropout(f32[T,4])", "dropout(f32[B,L,4]) {rate=0.5, site=3}"},
}};

}  // namespace
}  // namespace lathe::ops::dropout
