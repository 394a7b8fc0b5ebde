#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

using MadeStep = std::unique_ptr<CudaStep>;

// softmax(x), log_softmax(x) and their gradients (dy, y) along any axis.
MadeStep make_softmax(const Graph& graph, NodeId id, cuda::Softmax kind) {
  const Type& type = graph.types(id)[0];
  if (type.dtype != DType::F32) return nullptr;
  const std::size_t axis = ops::axis_position(graph.attribute(id).integer("axis"), type.rank());
  return cuda_step([=](const CudaCall& call) {
    const Type& x = call.type(0);
    Size outer(1), inner(1);
    for (std::size_t i = 0; i < x.rank(); ++i) {
      if (i < axis) outer *= x.shape[i];
      if (i > axis) inner *= x.shape[i];
    }
    call.kernels.softmax({.kind = kind,
                          .x = call.input(0),
                          .y = call.input(1),
                          .out = call.output(0),
                          .size = call.sizes.capacity(x.shape[axis]),
                          .inner = call.sizes.capacity(inner),
                          .outer = call.extent(outer)},
                         call.stream);
  });
}

// Rows may be padded, what is summed along may not.
bool softmax_takes_padding(const Graph& graph, NodeId id) {
  const Type& type = graph.types(id)[0];
  return ops::axis_position(graph.attribute(id).integer("axis"), type.rank()) != 0;
}

CudaKernel softmax_kernel(std::string op, cuda::Softmax kind) {
  return {std::move(op),
          [kind](const Graph& graph, NodeId id) { return make_softmax(graph, id, kind); },
          softmax_takes_padding};
}

// Where rows are sequences, logits are few and may be kept while the backward pass goes on.
class CrossEntropyStep final : public CudaStep {
 public:
  CrossEntropyStep(CudaRows logits, std::int64_t ignored, bool is_of_sequences)
      : logits_(std::move(logits)), ignored_(ignored), is_of_sequences_(is_of_sequences) {}
  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    return (2 * sizes.capacity(logits_.rows) + 1) * static_cast<std::int64_t>(sizeof(double));
  }
  bool can_run_beside() const override { return is_of_sequences_; }
  void launch(const CudaCall& call) const override {
    call.kernels.cross_entropy({.logits = call.input(0),
                                .labels = call.integers(1),
                                .classes = logits_.width,
                                .ignore_index = ignored_,
                                .losses = reinterpret_cast<double*>(call.scratch),
                                .sum = call.output(0),
                                .count = call.output(1),
                                .rows = call.extent(logits_.rows),
                                .fault = call.fault},
                               call.stream);
  }

 private:
  CudaRows logits_;
  std::int64_t ignored_;
  bool is_of_sequences_;
};

MadeStep make_cross_entropy(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> logits = cuda_rows(graph.type(graph.input(id, 0)));
  if (!logits || !is_integer(graph, graph.input(id, 1))) return nullptr;
  return std::make_unique<CrossEntropyStep>(*logits, graph.attribute(id).integer("ignore_index"),
                                            counts_sequences(graph, logits->rows));
}

MadeStep make_cross_entropy_gradient(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> logits = cuda_rows(graph.type(graph.input(id, 1)));
  if (!logits || !is_float(graph, graph.input(id, 0)) || !is_integer(graph, graph.input(id, 2)))
    return nullptr;
  const std::int64_t ignored = graph.attribute(id).integer("ignore_index");
  return cuda_step([ignored, rows = logits->rows, classes = logits->width](const CudaCall& call) {
    call.kernels.cross_entropy_gradient({.dsum = call.input(0),
                                         .logits = call.input(1),
                                         .labels = call.integers(2),
                                         .classes = classes,
                                         .ignore_index = ignored,
                                         .dlogits = call.output(0),
                                         .rows = call.extent(rows),
                                         .fault = call.fault},
                                        call.stream);
  });
}

MadeStep make_squared_error(const Graph& graph, NodeId id) {
  if (!is_float(graph, graph.input(id, 0)) || !is_float(graph, graph.input(id, 1))) return nullptr;
  return cuda_step_with_scratch(
      [](const Graph&, NodeId, const CudaSizes&) {
        return cuda::kSquaredErrorBlocks * static_cast<std::int64_t>(sizeof(double));
      },
      [](const CudaCall& call) {
        call.kernels.squared_error({.prediction = call.input(0),
                                    .target = call.input(1),
                                    .sum = call.output(0),
                                    .count = call.output(1),
                                    .scratch = reinterpret_cast<double*>(call.scratch),
                                    .elements = call.extent(call.input_type(0).num_elements())},
                                   call.stream);
      });
}

MadeStep make_squared_error_gradient(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].dtype != DType::F32) return nullptr;
  return cuda_step([](const CudaCall& call) {
    call.kernels.squared_error_gradient({.dsum = call.input(0),
                                         .prediction = call.input(1),
                                         .target = call.input(2),
                                         .dx = call.output(0),
                                         .elements = call.extent(call.type(0).num_elements())},
                                        call.stream);
  });
}

const Register softmax{softmax_kernel("softmax", cuda::Softmax::Forward)};
const Register log_softmax{softmax_kernel("log_softmax", cuda::Softmax::Logarithm)};
const Register softmax_gradient{softmax_kernel("softmax_gradient", cuda::Softmax::Gradient)};
const Register log_softmax_gradient{
    softmax_kernel("log_softmax_gradient", cuda::Softmax::LogarithmGradient)};
const Register cross_entropy{CudaKernel{"cross_entropy", make_cross_entropy, always_takes_padding}};
const Register cross_entropy_gradient{
    CudaKernel{"cross_entropy_gradient", make_cross_entropy_gradient, always_takes_padding}};
const Register squared_error{CudaKernel{"squared_error", make_squared_error, always_takes_padding}};
const Register squared_error_gradient{
    CudaKernel{"squared_error_gradient", make_squared_error_gradient, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
