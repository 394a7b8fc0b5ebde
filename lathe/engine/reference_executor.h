#pragma once

#include <functional>

#include "lathe/engine/executor.h"

namespace lathe::engine {

/// Evaluates a graph node by node with the ops' reference kernels: clear, slow, the oracle.
///
/// `observe`, when given, sees every value as it is computed, inputs and states included;
/// `updates`, when given, receives the values that the graph binds to states.
Feed run_reference(const Graph& graph, const State& state, const Feed& inputs,
                   const std::function<void(Value, const Tensor&)>& observe = {},
                   State* updates = nullptr);

/// Runs one node's reference kernel on concrete operands (nullptr where one is absent).
std::vector<Tensor> evaluate_node(const Graph& graph, NodeId id,
                                  const std::vector<const Tensor*>& operands,
                                  const SymbolValues& symbols);

}  // namespace lathe::engine
