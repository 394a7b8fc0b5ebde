#include <algorithm>
#include <cmath>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// batch_norm and its gradient, a channel at a time: what is summed over a channel is summed in
// double and in the order of its elements.

const float* floats_at(const WholeCall& call, std::size_t operand) {
  return reinterpret_cast<const float*>(call.inputs[operand]);
}
float* results_at(const WholeCall& call, std::size_t result) {
  return reinterpret_cast<float*>(call.outputs[result]);
}

ops::AxisSplit channels_of(const WholeCall& call) {
  return ops::split_around(call.graph.types(call.node)[0].dims(call.symbols), 1);
}

double inverse_deviation(const WholeCall& call, float variance) {
  return 1.0 / std::sqrt(variance + call.graph.attribute(call.node).real("eps"));
}

// Calls visit(first) where each run of a channel's elements begins.
template <typename Visit>
void each_run(const ops::AxisSplit& split, std::int64_t channel, const Visit& visit) {
  for (std::int64_t outer = 0; outer < split.outer; ++outer)
    visit((outer * split.size + channel) * split.inner);
}

class BatchNormStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const ops::AxisSplit split = channels_of(call);
    call.parallel(split.size, [&](std::int64_t c, int) {
      const double factor = inverse_deviation(call, floats_at(call, 4)[c]) * floats_at(call, 1)[c];
      const double mean = floats_at(call, 3)[c], bias = floats_at(call, 2)[c];
      each_run(split, c, [&](std::int64_t first) {
        for (std::int64_t i = first; i < first + split.inner; ++i)
          results_at(call, 0)[i] =
              static_cast<float>((floats_at(call, 0)[i] - mean) * factor + bias);
      });
    });
  }
};

class BatchNormGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const ops::AxisSplit split = channels_of(call);
    call.parallel(split.size, [&](std::int64_t c, int) {
      const double scale = inverse_deviation(call, floats_at(call, 4)[c]);
      const double weight = floats_at(call, 2)[c], mean = floats_at(call, 3)[c];
      double dweight = 0, dbias = 0;
      each_run(split, c, [&](std::int64_t first) {
        for (std::int64_t i = first; i < first + split.inner; ++i) {
          const double dy = floats_at(call, 0)[i];
          dweight += dy * (floats_at(call, 1)[i] - mean) * scale;
          dbias += dy;
          results_at(call, 0)[i] = static_cast<float>(dy * scale * weight);
        }
      });
      results_at(call, 1)[c] = static_cast<float>(dweight);
      results_at(call, 2)[c] = static_cast<float>(dbias);
      results_at(call, 3)[c] = static_cast<float>(-scale * weight * dbias);
      results_at(call, 4)[c] = static_cast<float>(-0.5 * scale * scale * weight * dweight);
    });
  }
};

template <typename NormStep>
CpuKernel norm_kernel(std::string op) {
  return {std::move(op), [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
            for (const Value& value : graph.inputs(id))
              if (graph.type(value).dtype != DType::F32) return nullptr;
            return std::make_unique<NormStep>();
          }};
}

const Register batch_norm{norm_kernel<BatchNormStep>("batch_norm")};
const Register batch_norm_gradient{norm_kernel<BatchNormGradientStep>("batch_norm_gradient")};

}  // namespace
}  // namespace lathe::engine
