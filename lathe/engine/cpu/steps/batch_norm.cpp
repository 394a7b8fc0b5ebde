#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// batch_norm and normalize_batch with their gradients, a channel at a time: what is summed over a
// channel is summed in double and in an order that threads do not change.

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

// Eight sums side by side, each in order, then together: additions need not wait for each other.
class LaneSums {
 public:
  static constexpr std::int64_t kLanes = 8;
  template <typename Term>
  void add(std::int64_t count, const Term& term) {
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes_[lane] += term(i + lane);
    for (; i < count; ++i) lanes_[0] += term(i);
  }
  double total() const {
    double sum = 0;
    for (const double lane : lanes_) sum += lane;
    return sum;
  }

 private:
  double lanes_[kLanes] = {};
};

class NormalizeBatchStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const ops::AxisSplit split = channels_of(call);
    const auto count = static_cast<double>(split.outer * split.inner);
    if (count == 1) fail("one element a channel has no variance: expected more");
    const double eps = call.graph.attribute(call.node).real("eps");
    const float* const x = floats_at(call, 0);
    call.parallel(split.size, [&](std::int64_t c, int) {
      LaneSums sum, squares;
      each_run(split, c, [&](std::int64_t first) {
        const float* const run = x + first;
        sum.add(split.inner, [run](std::int64_t i) { return static_cast<double>(run[i]); });
      });
      const double mean = sum.total() / count;
      each_run(split, c, [&](std::int64_t first) {
        const float* const run = x + first;
        squares.add(split.inner, [run, mean](std::int64_t i) {
          const double distance = run[i] - mean;
          return distance * distance;
        });
      });
      const double variance = squares.total() / (count - 1);
      const double factor = floats_at(call, 1)[c] / std::sqrt(variance * (count - 1) / count + eps);
      const auto slope = static_cast<float>(factor);
      const auto center = static_cast<float>(mean);
      const float bias = floats_at(call, 2)[c];
      each_run(split, c, [&](std::int64_t first) {
        const float* const run = x + first;
        float* const result = results_at(call, 0) + first;
        for (std::int64_t i = 0; i < split.inner; ++i) result[i] = (run[i] - center) * slope + bias;
      });
      results_at(call, 1)[c] = static_cast<float>(mean);
      results_at(call, 2)[c] = static_cast<float>(variance);
    });
  }
};

class NormalizeBatchGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const ops::AxisSplit split = channels_of(call);
    const auto count = static_cast<double>(split.outer * split.inner);
    const double eps = call.graph.attribute(call.node).real("eps");
    call.parallel(split.size, [&](std::int64_t c, int) {
      const double mean = floats_at(call, 3)[c];
      const double scale = 1.0 / std::sqrt(floats_at(call, 4)[c] * (count - 1) / count + eps);
      LaneSums products, sum;
      each_run(split, c, [&](std::int64_t first) {
        const float* const dy = floats_at(call, 0) + first;
        const float* const x = floats_at(call, 1) + first;
        products.add(split.inner, [dy, x, mean](std::int64_t i) { return dy[i] * (x[i] - mean); });
        sum.add(split.inner, [dy](std::int64_t i) { return static_cast<double>(dy[i]); });
      });
      const double dweight = products.total() * scale, dbias = sum.total();
      // dx = factor * (dy - dbias / n - (x - mean) * slope)
      const auto factor = static_cast<float>(scale * floats_at(call, 2)[c]);
      const auto slope = static_cast<float>(scale * dweight / count);
      const auto shift = static_cast<float>(dbias / count);
      const auto center = static_cast<float>(mean);
      each_run(split, c, [&](std::int64_t first) {
        const float* const dy = floats_at(call, 0) + first;
        const float* const x = floats_at(call, 1) + first;
        float* const dx = results_at(call, 0) + first;
        for (std::int64_t i = 0; i < split.inner; ++i)
          dx[i] = factor * (dy[i] - shift - (x[i] - center) * slope);
      });
      results_at(call, 1)[c] = static_cast<float>(dweight);
      results_at(call, 2)[c] = static_cast<float>(dbias);
    });
  }
};

// What also takes gradients of the statistics is the definition's to run.
template <typename NormStep>
CpuKernel norm_kernel(std::string op) {
  return {std::move(op), [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
            const std::size_t most = graph.is(id, "normalize_batch_gradient") ? 5 : 8;
            for (std::size_t i = 0; i < graph.inputs(id).size(); ++i) {
              const Value value = graph.input(id, i);
              if (value.is_none()) continue;
              if (i >= most || graph.type(value).dtype != DType::F32) return nullptr;
            }
            return std::make_unique<NormStep>();
          }};
}

const Register batch_norm{norm_kernel<BatchNormStep>("batch_norm")};
const Register batch_norm_gradient{norm_kernel<BatchNormGradientStep>("batch_norm_gradient")};
const Register normalize_batch{norm_kernel<NormalizeBatchStep>("normalize_batch")};
const Register normalize_batch_gradient{
    norm_kernel<NormalizeBatchGradientStep>("normalize_batch_gradient")};

}  // namespace
}  // namespace lathe::engine
