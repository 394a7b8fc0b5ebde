#include "lathe/train/non_finite.h"

#include <cmath>
#include <optional>

#include "lathe/engine/reference_executor.h"

namespace lathe::train {
namespace {

// Ends the computation once the answer is known: a step by the reference kernels is slow.
struct Found {
  Value value;
};

}  // namespace

bool is_finite(const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) return true;
  if (tensor.dtype() == DType::F32) {
    for (const float value : tensor.data<float>())
      if (!std::isfinite(value)) return false;
    return true;
  }
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
    if (!std::isfinite(tensor.at(i))) return false;
  return true;
}

std::string explain_non_finite(const Graph& graph, const State& state, const Feed& inputs) {
  try {
    engine::run_reference(graph, state, inputs, [](Value value, const Tensor& tensor) {
      if (!is_finite(tensor)) throw Found{value};
    });
  } catch (const Found& found) {
    const NodeId id = found.value.node;
    if (graph.is(id, "state")) return fmt::format("it is in the state \"{}\"", graph.name(id));
    if (graph.is(id, "input")) return fmt::format("it is in the input \"{}\"", graph.name(id));
    return fmt::format("first in node \"{}\" ({}), whose operands are finite", graph.name(id),
                       graph.op(id).name);
  }
  return "the reference executor, which rounds less, finds every value finite";
}

}  // namespace lathe::train
