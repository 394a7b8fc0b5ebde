#include "lathe/engine/reference_executor.h"

#include "lathe/engine/backend.h"
#include "lathe/engine/integer_products.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {

std::vector<Tensor> evaluate_node(const Graph& graph, NodeId id,
                                  const std::vector<const Tensor*>& operands,
                                  const SymbolValues& symbols) {
  return with_place(fmt::format("node \"{}\"", graph.name(id)), [&] {
    const Op& op = graph.op(id);
    check(static_cast<bool>(op.reference), "every op that is executed to have a reference kernel");
    std::vector<Tensor> results;
    for (const Type& type : graph.types(id)) results.emplace_back(type.dtype, type.dims(symbols));
    op.reference({graph.attribute(id), operands, results});
    return results;
  });
}

Feed run_reference(const Graph& graph, const State& state, const Feed& inputs,
                   const std::function<void(Value, const Tensor&)>& observe, State* updates) {
  const SymbolValues symbols = bind_symbols(graph, inputs);
  std::map<NodeId, std::vector<Tensor>> values;
  for (const NodeId id : graph.topological_order()) {
    std::vector<Tensor> results;
    if (graph.is(id, "input")) {
      results.push_back(inputs.find(graph.name(id))->second);
    } else if (graph.is(id, "state")) {
      const auto found = state.find(graph.name(id));
      check(found != state.end(), "every state to have a value");
      results.push_back(found->second);
    } else {
      std::vector<const Tensor*> operands;
      for (const Value& value : graph.inputs(id))
        operands.push_back(value.is_none()
                               ? nullptr
                               : &values.at(value.node)[static_cast<std::size_t>(value.index)]);
      results = evaluate_node(graph, id, operands, symbols);
    }
    if (observe)
      for (std::size_t i = 0; i < results.size(); ++i)
        observe({id, static_cast<std::int32_t>(i)}, results[i]);
    values.emplace(id, std::move(results));
  }
  Feed outputs;
  for (const auto& [name, value] : graph.outputs())
    outputs[name] = values.at(value.node)[static_cast<std::size_t>(value.index)];
  if (updates != nullptr)
    for (const auto& [slot, value] : graph.state_updates())
      (*updates)[graph.name(slot)] = values.at(value.node)[static_cast<std::size_t>(value.index)];
  return outputs;
}

namespace {

class ReferenceExecutor final : public Executor {
 public:
  ReferenceExecutor(const Graph& graph, State state) : graph_(graph), state_(std::move(state)) {}
  Feed run(const Feed& inputs) override {
    State updates;
    Feed outputs = run_reference(graph_, state_, inputs, {}, &updates);
    for (auto& [name, tensor] : updates) state_[name] = std::move(tensor);
    return outputs;
  }
  State state() const override { return state_; }
  void set_state(const State& values) override {
    check_new_state(graph_, values);
    for (const auto& [name, tensor] : values) state_[name] = tensor;
  }

 private:
  Graph graph_;
  State state_;
};

const Register registration{Backend{
    .name = "reference",
    .summary = "node by node with clear loops that accumulate in double precision",
    .can_run = [](const Graph& graph,
                  NodeId id) { return static_cast<bool>(graph.op(id).reference); },
    .make = [](const Graph& graph, State state,
               const ExecutionOptions& options) -> std::unique_ptr<Executor> {
      return std::make_unique<ReferenceExecutor>(
          options.uses_integers ? with_integer_products(graph) : graph, std::move(state));
    },
}};

}  // namespace
}  // namespace lathe::engine
