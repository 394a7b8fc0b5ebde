#include <cmath>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// running_average(kept, seen, scale) {momentum}: a few numbers a batch norm, in double as its
// definition does them.
class RunningAverageStep final : public Step {
 public:
  RunningAverageStep(Size count, double momentum) : count_(std::move(count)), momentum_(momentum) {}
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  bool has_tasks() const override { return true; }
  std::int64_t num_tasks(const WholeCall& /*call*/) const override { return 1; }
  void run_task(const WholeCall& call, std::int64_t /*task*/) const override {
    const auto floats = [&](std::size_t i) {
      return reinterpret_cast<const float*>(call.inputs[i]);
    };
    auto* const next = reinterpret_cast<float*>(call.outputs[0]);
    const bool is_kept = std::isnan(*floats(2));
    const std::int64_t count = count_.evaluate(call.symbols);
    for (std::int64_t i = 0; i < count; ++i) {
      const double kept = floats(0)[i];
      next[i] = static_cast<float>(is_kept ? kept : kept + momentum_ * (floats(1)[i] - kept));
    }
  }

 private:
  Size count_;
  double momentum_;
};

const Register running_average{
    CpuKernel{"running_average", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                for (const Value& operand : graph.inputs(id))
                  if (graph.type(operand).dtype != DType::F32) return nullptr;
                return std::make_unique<RunningAverageStep>(graph.types(id)[0].num_elements(),
                                                            graph.attribute(id).real("momentum"));
              }}};

}  // namespace
}  // namespace lathe::engine
