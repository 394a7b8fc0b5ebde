#include <algorithm>
#include <cmath>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// A loss over as many numbers as a batch has labels: a few hundred, in double and one after the
// other. Larger ones are cut into tasks whose sums are added in order.
class BinaryCrossEntropyStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const std::int64_t count =
        call.graph.type(call.graph.input(call.node, 0)).num_elements().evaluate(call.symbols);
    const auto* const logits = reinterpret_cast<const float*>(call.inputs[0]);
    const auto* const targets = reinterpret_cast<const float*>(call.inputs[1]);
    constexpr std::int64_t kGrain = 1 << 12;
    std::vector<double> sums(static_cast<std::size_t>((count + kGrain - 1) / kGrain));
    call.parallel(static_cast<std::int64_t>(sums.size()), [&](std::int64_t task, int) {
      double sum = 0;
      const std::int64_t end = std::min(count, (task + 1) * kGrain);
      for (std::int64_t i = task * kGrain; i < end; ++i) {
        const double x = logits[i];
        sum += std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - x * double{targets[i]};
      }
      sums[static_cast<std::size_t>(task)] = sum;
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    *reinterpret_cast<float*>(call.outputs[0]) = static_cast<float>(total);
    *reinterpret_cast<float*>(call.outputs[1]) = static_cast<float>(count);
  }
};

class BinaryCrossEntropyGradientStep final : public Step {
 public:
  explicit BinaryCrossEntropyGradientStep(RowSpace space) : space_(std::move(space)) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t count = call.rows * space_.output_widths[0];
    const double dsum = *call.input(0);
    const float* const logits = call.input(1);
    const float* const targets = call.input(2);
    for (std::int64_t i = 0; i < count; ++i)
      call.output(0)[i] =
          static_cast<float>(dsum * (1 / (1 + std::exp(-double{logits[i]})) - double{targets[i]}));
  }

 private:
  RowSpace space_;
};

const Register binary_cross_entropy{
    CpuKernel{"binary_cross_entropy", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (graph.type(graph.input(id, 0)).dtype != DType::F32) return nullptr;
                return std::make_unique<BinaryCrossEntropyStep>();
              }}};
const Register binary_cross_entropy_gradient{CpuKernel{
    "binary_cross_entropy_gradient", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
      const Type& type = graph.types(id)[0];
      if (type.dtype != DType::F32) return nullptr;
      const RowShape rows = row_shape(type).value_or(RowShape{type.num_elements(), 1});
      return std::make_unique<BinaryCrossEntropyGradientStep>(
          RowSpace{rows.rows, {0, rows.width, rows.width}, {rows.width}});
    }}};

}  // namespace
}  // namespace lathe::engine
