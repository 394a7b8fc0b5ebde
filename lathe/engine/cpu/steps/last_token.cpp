#include <cstring>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// last_token(x, mask) and last_token_gradient(dy, mask): whole rows copied from or to the last
// token that the mask marks, the first where it marks none.
class LastTokenStep final : public Step {
 public:
  explicit LastTokenStep(bool is_gradient) : is_gradient_(is_gradient) {}
  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    const Type& tokens =
        is_gradient_ ? graph.types(call.node)[0] : graph.type(graph.input(call.node, 0));
    const std::vector<std::int64_t> dims = tokens.dims(call.symbols);
    const std::int64_t rows = dims[0], length = dims[1];
    std::int64_t bytes = size_of(tokens.dtype);
    for (std::size_t axis = 2; axis < dims.size(); ++axis) bytes *= dims[axis];
    const auto* const mask = reinterpret_cast<const std::int32_t*>(call.inputs[1]);
    if (is_gradient_)
      std::memset(call.outputs[0], 0, static_cast<std::size_t>(rows * length * bytes));
    if (length == 0) return;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t last = length - 1;
      while (last > 0 && mask[row * length + last] == 0) --last;
      const std::int64_t token = row * length + last;
      std::byte* const target = call.outputs[0] + (is_gradient_ ? token : row) * bytes;
      const std::byte* const source = call.inputs[0] + (is_gradient_ ? row : token) * bytes;
      std::memcpy(target, source, static_cast<std::size_t>(bytes));
    }
  }

 private:
  bool is_gradient_;
};

CpuKernel last_token_kernel(std::string op, bool is_gradient) {
  return {std::move(op), [is_gradient](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
            if (graph.type(graph.input(id, 1)).dtype != DType::I32) return nullptr;
            return std::make_unique<LastTokenStep>(is_gradient);
          }};
}

const Register last_token{last_token_kernel("last_token", false)};
const Register last_token_gradient{last_token_kernel("last_token_gradient", true)};

}  // namespace
}  // namespace lathe::engine
