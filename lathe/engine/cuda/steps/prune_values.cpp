#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/prune_row.h"

namespace lathe::engine {
namespace {

// prune_values(x) and prune_values_gradient(dy, x): x is the last operand, and what is copied where
// it is kept the first.
std::unique_ptr<CudaStep> make(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.types(id)[0]);
  if (!x) return nullptr;
  const std::int64_t count = ops::num_pruned(graph.attribute(id).real("sparsity"), x->width);
  return cuda_step([count, rows = *x](const CudaCall& call) {
    call.kernels.prune_values({.x = call.input(call.inputs.size() - 1),
                               .from = call.input(0),
                               .y = call.output(0),
                               .count = count,
                               .columns = rows.width,
                               .rows = call.extent(rows.rows)},
                              call.stream);
  });
}

bool takes_padding(const Graph& graph, NodeId id) {
  return graph.types(id)[0].rank() > 1;
}

const Register prune_values{CudaKernel{"prune_values", make, takes_padding}};
const Register gradient{CudaKernel{"prune_values_gradient", make, takes_padding}};

}  // namespace
}  // namespace lathe::engine
