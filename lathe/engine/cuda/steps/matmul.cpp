#include <algorithm>

#include "lathe/engine/cuda/cuda_library.h"
#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/broadcast.h"

namespace lathe::engine {
namespace {

// matmul(a, b) {transpose_a, transpose_b}: products of the matrices in the last two axes. cuBLASLt
// counts columns first, so that y = a . b is y^T = b^T . a^T there: its first operand is b.
void run(const CudaCall& call, bool flip_a, bool flip_b) {
  const std::vector<std::int64_t> a = call.dims(call.input_type(0));
  const std::vector<std::int64_t> b = call.dims(call.input_type(1));
  const std::vector<std::int64_t> y = call.dims(call.type(0));
  const auto batch = [](const std::vector<std::int64_t>& dims) {
    return std::span(dims).first(dims.size() - 2);
  };
  cuda::GemmArgs args;
  args.m = y[y.size() - 1];
  args.n = y[y.size() - 2];
  args.k = flip_a ? a[a.size() - 2] : a[a.size() - 1];
  args.transpose_a = flip_b;
  args.transpose_b = flip_a;
  args.lda = std::max<std::int64_t>(1, b.back());
  args.ldb = std::max<std::int64_t>(1, a.back());
  args.ldc = std::max<std::int64_t>(1, args.m);
  const std::int64_t a_size = args.n * args.k, b_size = args.k * args.m, y_size = args.m * args.n;
  const std::int64_t batches = num_elements(batch(y));
  const std::int64_t a_count = num_elements(batch(a)), b_count = num_elements(batch(b));
  if (batches * y_size == 0) return;
  if (args.k == 0) {
    check_cuda(call.kernels.device.fill(call.outputs[0], 0, batches * y_size * 4, call.stream));
    return;
  }
  const auto multiply = [&](std::int64_t a_matrix, std::int64_t b_matrix, std::int64_t y_matrix) {
    args.a = call.input(1) + b_matrix * b_size;
    args.b = call.input(0) + a_matrix * a_size;
    args.c = call.output(0) + y_matrix * y_size;
    check_cuda(call.kernels.gemm(call.gemm, args, call.stream));
  };
  // The rows of all matrices against the same b are one matrix.
  if (b_count == 1 && !flip_a) {
    args.n *= batches;
    multiply(0, 0, 0);
    return;
  }
  if ((a_count == batches || a_count == 1) && (b_count == batches || b_count == 1)) {
    args.batches = batches;
    args.stride_a = b_count == 1 ? 0 : b_size;
    args.stride_b = a_count == 1 ? 0 : a_size;
    args.stride_c = y_size;
    multiply(0, 0, 0);
    return;
  }
  const std::vector<std::int64_t> a_matrix = ops::broadcast_indices(batch(a), batch(y));
  const std::vector<std::int64_t> b_matrix = ops::broadcast_indices(batch(b), batch(y));
  for (std::int64_t i = 0; i < batches; ++i)
    multiply(a_matrix[static_cast<std::size_t>(i)], b_matrix[static_cast<std::size_t>(i)], i);
}

std::unique_ptr<CudaStep> make_matmul(const Graph& graph, NodeId id) {
  if (!is_float(graph, graph.input(id, 0)) || !is_float(graph, graph.input(id, 1))) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return cuda_step([flip_a = attributes.flag("transpose_a"),
                    flip_b = attributes.flag("transpose_b")](const CudaCall& call) {
    run(call, flip_a, flip_b);
  });
}

// Rows of a against one matrix stand for themselves.
bool takes_padding(const Graph& graph, NodeId id) {
  const Type& b = graph.type(graph.input(id, 1));
  return !graph.attribute(id).flag("transpose_a") && b.rank() == 2 &&
         b.num_elements().is_constant();
}

const Register matmul{CudaKernel{"matmul", make_matmul, takes_padding}};

}  // namespace
}  // namespace lathe::engine
