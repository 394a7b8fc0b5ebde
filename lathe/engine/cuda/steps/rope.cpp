#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/rope_turn.h"

namespace lathe::engine {
namespace {

// rope(x, positions) and rope_gradient(dy, positions), which turns back.
std::unique_ptr<CudaStep> make_rope(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.types(id)[0]);
  if (!x || !is_integer(graph, graph.input(id, 1))) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const std::int64_t heads = attributes.integer("heads");
  const double direction = graph.is(id, "rope") ? 1 : -1;
  return cuda_step([=, rows = x->rows, n = x->width, theta = attributes.real("theta"),
                    scaling = ops::rope_scaling(attributes),
                    is_interleaved = attributes.flag("interleaved")](const CudaCall& call) {
    call.kernels.rope({.x = call.input(0),
                       .positions = call.integers(1),
                       .y = call.output(0),
                       .heads = heads,
                       .half = n / heads / 2,
                       .is_interleaved = is_interleaved,
                       .theta = theta,
                       .scaling = scaling,
                       .direction = direction,
                       .rows = call.extent(rows)},
                      call.stream);
  });
}

const Register rope{CudaKernel{"rope", make_rope, always_takes_padding}};
const Register rope_gradient{CudaKernel{"rope_gradient", make_rope, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
