#include <algorithm>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// squared_error(prediction, target): each task sums its elements in double, and the tasks' sums are
// added in order.
class SquaredErrorStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const std::int64_t count =
        call.graph.type(call.graph.input(call.node, 0)).num_elements().evaluate(call.symbols);
    const auto* const prediction = reinterpret_cast<const float*>(call.inputs[0]);
    const auto* const target = reinterpret_cast<const float*>(call.inputs[1]);
    constexpr std::int64_t kGrain = 1 << 14;
    std::vector<double> sums(static_cast<std::size_t>((count + kGrain - 1) / kGrain));
    call.parallel(static_cast<std::int64_t>(sums.size()), [&](std::int64_t task, int) {
      double sum = 0;
      const std::int64_t end = std::min(count, (task + 1) * kGrain);
      for (std::int64_t i = task * kGrain; i < end; ++i) {
        const double difference = double{prediction[i]} - double{target[i]};
        sum += difference * difference;
      }
      sums[static_cast<std::size_t>(task)] = sum;
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    *reinterpret_cast<float*>(call.outputs[0]) = static_cast<float>(total);
    *reinterpret_cast<float*>(call.outputs[1]) = static_cast<float>(count);
  }
};

// squared_error_gradient(dsum, prediction, target) = 2 dsum (prediction - target).
class SquaredErrorGradientStep final : public Step {
 public:
  explicit SquaredErrorGradientStep(RowSpace space) : space_(std::move(space)) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t count = call.rows * space_.output_widths[0];
    const float factor = 2 * *call.input(0);
    const auto combine = [&](Binary op, Operand a, Operand b) {
      call.kernels.binary({op, 1, count, a, b, call.output(0), count});
    };
    combine(Binary::Subtract, {call.input(1), 0, 1}, {call.input(2), 0, 1});
    combine(Binary::Multiply, {call.output(0), 0, 1}, {&factor, 0, 0});
  }

 private:
  RowSpace space_;
};

const Register squared_error{
    CpuKernel{"squared_error", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (graph.type(graph.input(id, 0)).dtype != DType::F32) return nullptr;
                return std::make_unique<SquaredErrorStep>();
              }}};
const Register squared_error_gradient{
    CpuKernel{"squared_error_gradient", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                const Type& type = graph.types(id)[0];
                if (type.dtype != DType::F32) return nullptr;
                const RowShape rows = row_shape(type).value_or(RowShape{type.num_elements(), 1});
                return std::make_unique<SquaredErrorGradientStep>(
                    RowSpace{rows.rows, {0, rows.width, rows.width}, {rows.width}});
              }}};

}  // namespace
}  // namespace lathe::engine
