#include <cmath>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// folded_weight and folded_bias, once whenever a state changes: what is not worth a vector.

const float* operand_at(const WholeCall& call, std::size_t operand) {
  return reinterpret_cast<const float*>(call.inputs[operand]);
}

double norm_factor(const WholeCall& call, std::size_t weight, std::size_t variance,
                   std::int64_t c) {
  return operand_at(call, weight)[c] /
         std::sqrt(operand_at(call, variance)[c] + call.graph.attribute(call.node).real("eps"));
}

class FoldedWeightStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const std::vector<std::int64_t> dims = call.graph.types(call.node)[0].dims(call.symbols);
    const std::int64_t row = num_elements(dims) / dims[0];
    float* const result = reinterpret_cast<float*>(call.outputs[0]);
    call.parallel(dims[0], [&](std::int64_t c, int) {
      const double factor = norm_factor(call, 1, 2, c);
      for (std::int64_t i = c * row; i < (c + 1) * row; ++i)
        result[i] = static_cast<float>(operand_at(call, 0)[i] * factor);
    });
  }
};

class FoldedBiasStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const std::int64_t channels = call.graph.types(call.node)[0].dims(call.symbols)[0];
    const bool has_bias =
        call.graph.inputs(call.node).size() > 4 && !call.graph.input(call.node, 4).is_none();
    float* const result = reinterpret_cast<float*>(call.outputs[0]);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double bias = has_bias ? operand_at(call, 4)[c] : 0;
      result[c] = static_cast<float>((bias - operand_at(call, 2)[c]) * norm_factor(call, 0, 3, c) +
                                     operand_at(call, 1)[c]);
    }
  }
};

template <typename FoldedStep>
CpuKernel folded_kernel(std::string op) {
  return {std::move(op), [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
            for (const Value& value : graph.inputs(id))
              if (!value.is_none() && graph.type(value).dtype != DType::F32) return nullptr;
            return std::make_unique<FoldedStep>();
          }};
}

const Register folded_weight{folded_kernel<FoldedWeightStep>("folded_weight")};
const Register folded_bias{folded_kernel<FoldedBiasStep>("folded_bias")};

}  // namespace
}  // namespace lathe::engine
