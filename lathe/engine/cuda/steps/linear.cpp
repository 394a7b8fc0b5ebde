#include <algorithm>
#include <iterator>

#include "lathe/engine/cuda/cuda_library.h"
#include "lathe/engine/cuda/cuda_maps.h"
#include "lathe/engine/cuda/cuda_step.h"

namespace lathe::engine {
namespace {

// linear, fused_linear and the two products of their gradient, by cuBLASLt. It counts columns
// first: a row-major [rows, n] is its [n, rows].

void multiply(const CudaCall& call, const cuda::GemmArgs& args) {
  if (args.k == 0) {
    check_cuda(
        call.kernels.device.fill(args.c, 0, args.m * args.n * args.batches * 4, call.stream));
    return;
  }
  check_cuda(call.kernels.gemm(call.gemm, args, call.stream));
}

// Whether rows beyond the real ones may hold the bias instead of zeros: everybody who reads them
// goes row by row and writes zeros there, and the product that sums over rows has zeros in its
// other operand.
bool may_leave_bias(const Graph& graph, NodeId id) {
  constexpr std::string_view kByRows[] = {"attention",        "attention_gradient", "layer_norm",
                                          "fused_layer_norm", "random_dropout",     "map_gradient"};
  for (const Use& use : graph.uses(id)) {
    if (use.kind != Use::Kind::Operand) continue;  // outputs are cut, states have no rows
    const std::string& op = graph.op(use.user).name;
    const bool is_known =
        std::find(std::begin(kByRows), std::end(kByRows), op) != std::end(kByRows);
    const bool is_map = find_cuda_map(op, graph.attribute(use.user)).has_value();
    const bool is_activation = op == "linear_weight_gradient" && use.operand == 1;
    if (!is_known && !is_map && !is_activation) return false;
  }
  return true;
}

std::unique_ptr<CudaStep> make_linear(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> y = cuda_rows(graph.types(id)[0]);
  if (!x || !y || !is_float(graph, graph.input(id, 1))) return nullptr;
  cuda::Map map = cuda::Map::Identity;
  if (graph.is(id, "fused_linear")) {
    const std::optional<cuda::Map> found =
        find_cuda_epilogue(graph.attribute(id).text("activation"));
    if (!found) return nullptr;
    map = *found;
  }
  const bool has_residual = graph.inputs(id).size() > 3 && !graph.input(id, 3).is_none();
  const bool has_bias = graph.inputs(id).size() > 2 && !graph.input(id, 2).is_none();
  // An activation or a residual needs a pass of its own, which adds the bias, too.
  const bool adds_bias_at_once =
      has_bias && map == cuda::Map::Identity && !has_residual && may_leave_bias(graph, id);
  return cuda_step([=, rows = x->rows, k = x->width, n = y->width](const CudaCall& call) {
    const cuda::Extent extent = call.extent(rows);
    multiply(call, {.transpose_a = true,
                    .m = n,
                    .n = extent.capacity,
                    .k = k,
                    .a = call.input(1),
                    .b = call.input(0),
                    .c = call.output(0),
                    .lda = k,
                    .ldb = k,
                    .ldc = n,
                    .bias = adds_bias_at_once ? call.input(2) : nullptr});
    if ((!has_bias || adds_bias_at_once) && map == cuda::Map::Identity && !has_residual) return;
    call.kernels.epilogue({.y = call.output(0),
                           .bias = has_bias ? call.input(2) : nullptr,
                           .residual = has_residual ? call.input(3) : nullptr,
                           .map = map,
                           .n = n,
                           .rows = extent},
                          call.stream);
  });
}

// dx[rows, k] = dy[rows, n] . w[n, k].
std::unique_ptr<CudaStep> make_input_gradient(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> dy = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> dx = cuda_rows(graph.types(id)[0]);
  if (!dy || !dx || !is_float(graph, graph.input(id, 1))) return nullptr;
  return cuda_step([rows = dy->rows, n = dy->width, k = dx->width](const CudaCall& call) {
    multiply(call, {.m = k,
                    .n = call.sizes.capacity(rows),
                    .k = n,
                    .a = call.input(1),
                    .b = call.input(0),
                    .c = call.output(0),
                    .lda = k,
                    .ldb = n,
                    .ldc = k});
  });
}

// dw[n, k] = dy[rows, n]^T . x[rows, k]: rows beyond the real ones are zero in dy.
std::unique_ptr<CudaStep> make_weight_gradient(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> dy = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> x = cuda_rows(graph.type(graph.input(id, 1)));
  if (!dy || !x) return nullptr;
  return cuda_step([rows = dy->rows, n = dy->width, k = x->width](const CudaCall& call) {
    multiply(call, {.transpose_b = true,
                    .m = k,
                    .n = n,
                    .k = call.sizes.capacity(rows),
                    .a = call.input(1),
                    .b = call.input(0),
                    .c = call.output(0),
                    .lda = k,
                    .ldb = n,
                    .ldc = k});
  });
}

const Register linear{CudaKernel{"linear", make_linear, always_takes_padding}};
const Register fused_linear{CudaKernel{"fused_linear", make_linear, always_takes_padding}};
const Register input_gradient{
    CudaKernel{"linear_input_gradient", make_input_gradient, always_takes_padding}};
const Register weight_gradient{
    CudaKernel{"linear_weight_gradient", make_weight_gradient, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
