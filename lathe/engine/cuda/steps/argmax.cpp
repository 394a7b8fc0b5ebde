#include <limits>

#include "lathe/engine/cuda/cuda_step.h"

namespace lathe::engine {
namespace {

std::unique_ptr<CudaStep> make_argmax(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.type(graph.input(id, 0)));
  if (!x || x->width > std::numeric_limits<std::int32_t>::max()) return nullptr;
  return cuda_step([rows = x->rows, n = x->width](const CudaCall& call) {
    call.kernels.argmax({.x = call.input(0),
                         .y = reinterpret_cast<std::int32_t*>(call.outputs[0]),
                         .n = n,
                         .rows = call.extent(rows)},
                        call.stream);
  });
}

const Register argmax{CudaKernel{"argmax", make_argmax, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
