#include "lathe/engine/cuda/cuda_format.h"
#include "lathe/ops/channel_matrix.h"

namespace lathe::engine {
namespace {

// decode(codes, local?, scale?, zero?): rows that lie one after another. An axis before the last
// would move numbers about; such weights are decoded by their definition when states are set.
std::unique_ptr<CudaStep> make_decode(const Graph& graph, NodeId id) {
  const std::optional<CudaPacked> packed = cuda_packed(graph, id, 0);
  if (!packed || graph.attribute(id).integer("axis") > 0) return nullptr;
  return cuda_step([packed = *packed](const CudaCall& call) {
    cuda::DecodeArgs args;
    args.packed = packed.of(call);
    args.y = call.outputs[0];
    args.rows.capacity = packed.matrix.rows;
    call.kernels.decode(args, call.stream);
  });
}

// packed_embedding(ids, codes, local?, scale?, zero?): only the rows that are looked up are
// decoded.
std::unique_ptr<CudaStep> make_embedding(const Graph& graph, NodeId id) {
  const std::optional<CudaPacked> packed = cuda_packed(graph, id, 1);
  if (!packed || !is_integer(graph, graph.input(id, 0))) return nullptr;
  return cuda_step([packed = *packed](const CudaCall& call) {
    cuda::DecodeArgs args;
    args.packed = packed.of(call);
    args.indices = call.integers(0);
    args.y = call.outputs[0];
    args.rows = call.extent(call.input_type(0).num_elements());
    args.fault = call.fault;
    call.kernels.decode(args, call.stream);
  });
}

const Register decode{CudaKernel{"decode", make_decode}};
const Register embedding{CudaKernel{"packed_embedding", make_embedding, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
