#include <cmath>
#include <limits>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// gradient_scale(total_squares, count) {max_norm}: a few operations on two numbers, in double as
// its definition does them.
class GradientScaleStep final : public Step {
 public:
  explicit GradientScaleStep(double max_norm) : max_norm_(max_norm) {}
  void run_whole(const WholeCall& call) const override {
    const double squares = *reinterpret_cast<const float*>(call.inputs[0]);
    const double count = *reinterpret_cast<const float*>(call.inputs[1]);
    const double norm = std::sqrt(squares) / count;
    double scale = 1.0 / count;
    if (max_norm_ > 0 && norm > max_norm_) scale *= max_norm_ / (norm + 1e-6);
    if (!std::isfinite(norm)) scale = std::numeric_limits<double>::quiet_NaN();
    *reinterpret_cast<float*>(call.outputs[0]) = static_cast<float>(scale);
    *reinterpret_cast<float*>(call.outputs[1]) = static_cast<float>(norm);
  }

 private:
  double max_norm_;
};

const Register gradient_scale{
    CpuKernel{"gradient_scale", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                for (const Value& operand : graph.inputs(id))
                  if (graph.type(operand).dtype != DType::F32) return nullptr;
                return std::make_unique<GradientScaleStep>(graph.attribute(id).real("max_norm"));
              }}};

}  // namespace
}  // namespace lathe::engine
