#pragma once

#include "lathe/core/graph.h"
#include "lathe/core/pass.h"

namespace lathe::engine {

/// The inputs of a graph, found once: an executor asks for them in every run, and a graph goes
/// through all of its nodes to name them.
class GraphInputs {
 public:
  struct Input {
    NodeId node;
    std::string name;
    Type type;
    std::vector<std::vector<std::string>> symbols;  ///< of each axis
  };
  GraphInputs() = default;
  explicit GraphInputs(const Graph& graph);
  const std::vector<Input>& all() const { return inputs_; }

  /// Finds the value of every symbol from the shapes of the inputs given, and checks that every
  /// input is there with the dtype and shape it declares.
  SymbolValues bind_symbols(const Feed& feed) const;

 private:
  std::vector<Input> inputs_;  // in the order that a graph names them
};

/// The same for one run of a graph.
SymbolValues bind_symbols(const Graph& graph, const Feed& feed);

/// Checks that every state of the graph has a value of its declared type; fails naming the first
/// that is missing or of another shape.
void check_state(const Graph& graph, const State& state);

/// Checks values that some states are to take: each must be a state's, of its declared type.
void check_new_state(const Graph& graph, const State& values);

}  // namespace lathe::engine
