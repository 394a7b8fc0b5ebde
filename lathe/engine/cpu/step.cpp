#include "lathe/engine/cpu/step.h"

#include <cstring>

namespace lathe::engine {

std::optional<RowShape> row_shape(const Type& type) {
  if (type.dtype != DType::F32 || type.shape.empty() || !type.shape.back().is_constant())
    return std::nullopt;
  RowShape result{Size(1), type.shape.back().constant()};
  if (result.width == 0) return std::nullopt;
  for (std::size_t axis = 0; axis + 1 < type.rank(); ++axis) result.rows *= type.shape[axis];
  return result;
}

namespace {

// Runs an op that the CPU has no kernel for by its definition: right, and as slow as it is.
class ReferenceStep final : public Step {
 public:
  bool is_reference() const override { return true; }
  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    std::vector<Tensor> operands;
    std::vector<const Tensor*> pointers;
    operands.reserve(call.inputs.size());
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i] == nullptr) {
        pointers.push_back(nullptr);
        continue;
      }
      const Type& type = graph.type(graph.input(call.node, i));
      operands.push_back(
          Tensor::view(type.dtype, type.dims(call.symbols), call.inputs[i], nullptr));
      pointers.push_back(&operands.back());
    }
    std::vector<Tensor> results;
    for (const Type& type : graph.types(call.node))
      results.emplace_back(type.dtype, type.dims(call.symbols));
    graph.op(call.node).reference({graph.attribute(call.node), pointers, results});
    for (std::size_t i = 0; i < results.size(); ++i)
      std::memcpy(call.outputs[i], results[i].bytes(),
                  static_cast<std::size_t>(results[i].num_bytes()));
  }
};

}  // namespace

std::unique_ptr<Step> make_own_step(const Graph& graph, NodeId id) {
  const CpuKernel* const kernel = Registry<CpuKernel>::instance().find(graph.op(id).name);
  return kernel == nullptr ? nullptr : kernel->make(graph, id);
}

std::unique_ptr<Step> make_step(const Graph& graph, NodeId id) {
  if (std::unique_ptr<Step> step = make_own_step(graph, id)) return step;
  check(static_cast<bool>(graph.op(id).reference),
        "a CPU kernel or a reference kernel for each op");
  return std::make_unique<ReferenceStep>();
}

}  // namespace lathe::engine
