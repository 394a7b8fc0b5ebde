#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/underflow.h"

// softmax(x) {axis}: y = exp(x) / sum of exp(x) along one axis; log_softmax is its logarithm. Both
// subtract the largest value first, which changes nothing but keeps the exponentials finite.
// Probabilities below the smallest normal float are 0.
namespace lathe::ops::softmax {
namespace {

std::vector<Type> infer(std::string_view name, const OpCall& call) {
  require_floating(name, call, 0);
  const Type& x = call.input(0);
  axis_position(name, call.attributes().integer("axis"), x);
  return {{.dtype = x.dtype, .shape = x.shape}};
}

// Maximum, difference, exponential, sum, quotient.
Size flops(const OpCall& call) {
  return Size(5) * call.input(0).num_elements();
}

void reference(const KernelCall& call, bool logarithm) {
  const Tensor& x = call.input(0);
  std::vector<double> values = read_elements(x);
  const AxisSplit split =
      split_around(x.dims(), axis_position(call.attributes.integer("axis"), x.rank()));
  for (std::int64_t outer = 0; outer < split.outer; ++outer) {
    for (std::int64_t inner = 0; inner < split.inner; ++inner) {
      const auto at = [&](std::int64_t i) -> double& {
        return values[static_cast<std::size_t>((outer * split.size + i) * split.inner + inner)];
      };
      double highest = -std::numeric_limits<double>::infinity();
      for (std::int64_t i = 0; i < split.size; ++i) highest = std::max(highest, at(i));
      double sum = 0;
      for (std::int64_t i = 0; i < split.size; ++i) sum += std::exp(at(i) - highest);
      for (std::int64_t i = 0; i < split.size; ++i)
        at(i) = logarithm ? at(i) - highest - std::log(sum)
                          : unless_below(kSmallestNormal, std::exp(at(i) - highest) / sum);
    }
  }
  write_elements(call.outputs[0], values);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", graph.op(node).name + "_gradient",
                 {gradients[0], Value{node, 0}}, graph.attributes(node))};
}

Op softmax_op(const std::string& name, const std::string& summary, bool logarithm) {
  return {
      .name = name,
      .summary = summary,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "axis", .default_value = -1, .summary = "the axis that sums to one"}},
      .infer = [name](const OpCall& call) { return infer(name, call); },
      .flops = flops,
      .reference = [logarithm](const KernelCall& call) { reference(call, logarithm); },
      .gradient = gradient,
      .pack = repeat_packed_along_axis,
      .examples = {name + "(f32[T,4])", name + "(f32[2,3,4]) {axis=1}"},
  };
}

const Register softmax{
    softmax_op("softmax", "exponentials along an axis, scaled to sum to one", false)};
const Register log_softmax{softmax_op("log_softmax", "the logarithm of softmax", true)};

}  // namespace
}  // namespace lathe::ops::softmax
