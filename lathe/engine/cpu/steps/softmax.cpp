#include <algorithm>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// softmax(x), log_softmax(x) and their gradients (dy, y) along the last axis: by rows where its
// size is known, whole where it is a number of keys.

enum class Kind { Softmax, LogSoftmax, SoftmaxGradient, LogSoftmaxGradient };

// Rows of n numbers, densely; `second` is only the gradients'.
void run_kernel(const Kernels& kernels, Kind kind, std::int64_t rows, std::int64_t n,
                const float* first, const float* second, float* y) {
  switch (kind) {
    case Kind::Softmax:
      return kernels.softmax_rows({rows, n, first, n, y, n});
    case Kind::LogSoftmax:
      return kernels.log_softmax_rows({rows, n, first, n, y, n});
    case Kind::SoftmaxGradient:
      return kernels.softmax_backward_rows({rows, n, first, n, second, n, y, n});
    case Kind::LogSoftmaxGradient:
      return kernels.log_softmax_backward_rows({rows, n, first, n, second, n, y, n});
  }
}

class SoftmaxRowsStep final : public Step {
 public:
  SoftmaxRowsStep(RowSpace space, Kind kind) : space_(std::move(space)), kind_(kind) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    run_kernel(call.kernels, kind_, call.rows, space_.output_widths[0], call.input(0),
               call.inputs.size() > 1 ? call.input(1) : nullptr, call.output(0));
  }

 private:
  RowSpace space_;
  Kind kind_;
};

class SoftmaxStep final : public Step {
 public:
  explicit SoftmaxStep(Kind kind) : kind_(kind) {}
  void run_whole(const WholeCall& call) const override {
    const std::vector<std::int64_t> dims = call.graph.types(call.node)[0].dims(call.symbols);
    const std::int64_t n = dims.back();
    if (n == 0) return;
    const std::int64_t rows = num_elements(dims) / n;
    constexpr std::int64_t kTaskElements = 1 << 14;
    const std::int64_t grain = std::max<std::int64_t>(1, kTaskElements / n);
    const auto floats = [](const std::byte* bytes) {
      return reinterpret_cast<const float*>(bytes);
    };
    call.parallel((rows + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t first = task * grain;
      run_kernel(call.kernels, kind_, std::min(grain, rows - first), n,
                 floats(call.inputs[0]) + first * n,
                 call.inputs.size() > 1 ? floats(call.inputs[1]) + first * n : nullptr,
                 reinterpret_cast<float*>(call.outputs[0]) + first * n);
    });
  }

 private:
  Kind kind_;
};

std::unique_ptr<Step> make_softmax(const Graph& graph, NodeId id, Kind kind) {
  const Type& type = graph.types(id)[0];
  if (type.dtype != DType::F32) return nullptr;
  const std::int64_t axis = graph.attribute(id).integer("axis");
  if (ops::axis_position(axis, type.rank()) + 1 != type.rank()) return nullptr;
  const std::optional<RowShape> x = row_shape(type);
  if (!x) return std::make_unique<SoftmaxStep>(kind);
  RowSpace space{x->rows, {}, {x->width}};
  space.input_widths.resize(graph.inputs(id).size(), x->width);
  return std::make_unique<SoftmaxRowsStep>(std::move(space), kind);
}

CpuKernel softmax_kernel(std::string op, Kind kind) {
  return {std::move(op),
          [kind](const Graph& graph, NodeId id) { return make_softmax(graph, id, kind); }};
}

const Register softmax{softmax_kernel("softmax", Kind::Softmax)};
const Register log_softmax{softmax_kernel("log_softmax", Kind::LogSoftmax)};
const Register softmax_gradient{softmax_kernel("softmax_gradient", Kind::SoftmaxGradient)};
const Register log_softmax_gradient{
    softmax_kernel("log_softmax_gradient", Kind::LogSoftmaxGradient)};

}  // namespace
}  // namespace lathe::engine
