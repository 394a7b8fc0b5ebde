#include "lathe/engine/cuda/cuda_row_program.h"

namespace lathe::engine {
namespace {

using Kind = cuda::RowInstruction::Kind;

// layer_norm(x, weight, bias), fused_layer_norm(x, residual, weight, bias) and rms_norm(x, weight).
std::unique_ptr<CudaStep> make_normalize(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.types(id)[0]);
  if (!x) return nullptr;
  const bool is_rms = graph.is(id, "rms_norm");
  const bool has_residual = graph.is(id, "fused_layer_norm");
  const std::size_t gamma = has_residual ? 2 : 1;
  const auto eps = static_cast<float>(graph.attribute(id).real("eps"));
  if (fits_row_program(x->width)) {
    std::vector<std::size_t> operands{0};
    if (has_residual) operands.push_back(1);
    return cuda_row_step({x->rows, x->width, operands, is_rms ? 1 : 2}, [=](CudaRowProgram& program,
                                                                            const CudaCall& call) {
      int sum = program.operand(call, 0);
      if (has_residual)
        sum = program.add({.kind = Kind::Pair, .a = sum, .b = program.operand(call, 1)});
      program.add(call,
                  {.kind = Kind::Normalize,
                   .a = sum,
                   .b = program.vector(call, gamma),
                   .c = is_rms ? -1 : program.vector(call, gamma + 1),
                   .low = eps,
                   .is_rms = is_rms},
                  0);
    });
  }
  return cuda_step([=, rows = x->rows, n = x->width](const CudaCall& call) {
    call.kernels.normalize({.is_rms = is_rms,
                            .x = call.input(0),
                            .residual = has_residual ? call.input(1) : nullptr,
                            .gamma = call.input(gamma),
                            .beta = is_rms ? nullptr : call.input(gamma + 1),
                            .y = call.output(0),
                            .eps = eps,
                            .n = n,
                            .rows = call.extent(rows)},
                           call.stream);
  });
}

std::int64_t statistics_bytes(std::int64_t rows) {
  return (rows * 2 * static_cast<std::int64_t>(sizeof(float)) + 255) / 256 * 256;
}

// (dy, x, weight) -> dx, dweight and, of a layer norm, dbias.
std::unique_ptr<CudaStep> make_gradient(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.types(id)[0]);
  if (!x) return nullptr;
  const bool is_rms = graph.is(id, "rms_norm_gradient");
  const auto eps = static_cast<float>(graph.attribute(id).real("eps"));
  const Size rows = x->rows;
  const std::int64_t n = x->width;
  if (fits_row_program(n)) {
    std::vector<CudaParts> parts{row_parts_of(1, *x)};
    if (!is_rms) parts.push_back(row_parts_of(2, *x));
    return cuda_row_step(
        {rows, n, {0, 1}, 1, is_rms ? 1 : 2},
        [=](CudaRowProgram& program, const CudaCall& call) {
          const int dy = program.operand(call, 0);
          cuda::RowInstruction instruction{.kind = Kind::NormalizeGradient,
                                           .a = dy,
                                           .b = program.operand(call, 1),
                                           .c = program.vector(call, 2),
                                           .low = eps,
                                           .is_rms = is_rms};
          program.add_sums(call, instruction, 1, is_rms ? 1 : 2);
          program.add(call, instruction, 0);
        },
        std::move(parts));
  }
  return cuda_step_with_scratch(
      [=](const Graph&, NodeId, const CudaSizes& sizes) {
        const std::int64_t capacity = sizes.capacity(rows);
        return statistics_bytes(capacity) +
               most_row_chunks(capacity) * 2 * n * static_cast<std::int64_t>(sizeof(double));
      },
      [=](const CudaCall& call) {
        const cuda::Extent extent = call.extent(rows);
        call.kernels.normalize_gradient(
            {.is_rms = is_rms,
             .dy = call.input(0),
             .x = call.input(1),
             .gamma = call.input(2),
             .dx = call.output(0),
             .dgamma = call.output(1),
             .dbeta = is_rms ? nullptr : call.output(2),
             .statistics = reinterpret_cast<float*>(call.scratch),
             .scratch = reinterpret_cast<double*>(call.scratch + statistics_bytes(extent.capacity)),
             .eps = eps,
             .n = n,
             .rows = extent},
            call.stream);
      });
}

const Register layer_norm{CudaKernel{"layer_norm", make_normalize, always_takes_padding}};
const Register fused{CudaKernel{"fused_layer_norm", make_normalize, always_takes_padding}};
const Register rms_norm{CudaKernel{"rms_norm", make_normalize, always_takes_padding}};
const Register layer_norm_gradient{
    CudaKernel{"layer_norm_gradient", make_gradient, always_takes_padding}};
const Register rms_norm_gradient{
    CudaKernel{"rms_norm_gradient", make_gradient, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
