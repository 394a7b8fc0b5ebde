#include "lathe/engine/cuda/cuda_row_program.h"
#include "lathe/ops/dropout_mask.h"

namespace lathe::engine {
namespace {

// random_dropout(x, random, examples, positions); its gradient is the same op.
std::unique_ptr<CudaStep> make_dropout(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.types(id)[0]);
  if (!x || graph.type(graph.input(id, 1)).dtype != DType::I32 ||
      !is_integer(graph, graph.input(id, 2)) || !is_integer(graph, graph.input(id, 3)))
    return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const std::uint32_t threshold = ops::dropout_threshold(attributes.real("rate"));
  const auto site = static_cast<std::uint32_t>(attributes.integer("site"));
  const auto scale = static_cast<float>(ops::dropout_scale(threshold));
  if (fits_row_program(x->width))
    return cuda_row_step(
        {x->rows, x->width, {0}}, [=](CudaRowProgram& program, const CudaCall& call) {
          program.add(call,
                      {.kind = cuda::RowInstruction::Kind::Dropout,
                       .a = program.operand(call, 0),
                       .threshold = threshold,
                       .site = site,
                       .scale = scale,
                       .random = reinterpret_cast<const std::int32_t*>(call.inputs[1]),
                       .ids = call.integers(2),
                       .positions = call.integers(3)},
                      0);
        });
  return cuda_step([=, rows = x->rows, n = x->width](const CudaCall& call) {
    call.kernels.dropout({.x = call.input(0),
                          .random = reinterpret_cast<const std::int32_t*>(call.inputs[1]),
                          .examples = call.integers(2),
                          .positions = call.integers(3),
                          .y = call.output(0),
                          .threshold = threshold,
                          .site = site,
                          .scale = scale,
                          .n = n,
                          .rows = call.extent(rows)},
                         call.stream);
  });
}

const Register dropout{CudaKernel{"random_dropout", make_dropout, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
