#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// linear and fused_linear: a GEMM with packed weights, bias, activation and residual in its
// epilogue.
class LinearStep final : public Step {
 public:
  LinearStep(RowSpace space, std::int64_t n, std::int64_t k, Unary activation)
      : space_(std::move(space)), n_(n), k_(k), activation_(activation) {}

  const RowSpace* rows() const override { return &space_; }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    packed_.reserve(kernels.packed_size(n_, k_) * static_cast<std::int64_t>(sizeof(float)));
    kernels.pack_b(states[1]->data<float>().data(), n_, k_, k_, 1, packed_.floats());
  }

  void run_rows(const RowCall& call) const override {
    const auto operand = [&](std::size_t i) {
      return i < call.inputs.size() ? call.input(i) : nullptr;
    };
    call.kernels.gemm({.rows = call.rows,
                       .n = n_,
                       .k = k_,
                       .x = call.input(0),
                       .x_stride = k_,
                       .packed = packed_.floats(),
                       .bias = operand(2),
                       .activation = activation_,
                       .residual = operand(3),
                       .residual_stride = n_,
                       .y = call.output(0),
                       .y_stride = n_,
                       .accumulate = false});
  }

 private:
  RowSpace space_;
  std::int64_t n_, k_;
  Unary activation_;
  AlignedBuffer packed_;
};

std::unique_ptr<Step> make_linear(const Graph& graph, NodeId id) {
  const Value weight = graph.input(id, 1);
  const std::optional<RowShape> x = row_shape(graph.type(graph.input(id, 0)));
  const std::optional<RowShape> y = row_shape(graph.types(id)[0]);
  // A weight computed by the graph would have to be packed on every run.
  if (!x || !y || !graph.is(weight.node, "state") || graph.type(weight).dtype != DType::F32)
    return nullptr;
  Unary activation = Unary::None;
  if (graph.is(id, "fused_linear")) {
    const std::string& name = graph.attribute(id).text("activation");
    const Activation* const fused = find_epilogue(name);
    if (fused == nullptr && name != "none") return nullptr;
    if (fused != nullptr) activation = fused->function;
  }
  RowSpace space{x->rows, {x->width, 0, 0, y->width}, {y->width}};
  space.input_widths.resize(graph.inputs(id).size());
  return std::make_unique<LinearStep>(std::move(space), y->width, x->width, activation);
}

const Register linear{CpuKernel{"linear", make_linear}};
const Register fused_linear{CpuKernel{"fused_linear", make_linear}};

}  // namespace
}  // namespace lathe::engine
