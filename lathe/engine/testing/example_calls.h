#pragma once

// For the tests that walk over all ops: a call from an op's examples as a graph that runs, with
// values for what it reads.

#include <string>
#include <vector>

#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/ops/example.h"

namespace lathe::engine {

struct ExampleCall {
  Graph graph;
  Feed feed;
  State state;
};

/// With weights, operands after the first that are floats or codes of a known shape are states.
inline ExampleCall make_example_call(const std::string& text, bool has_weights) {
  ops::Example example = ops::parse_example(text);
  Graph& graph = example.graph;
  ExampleCall call;
  // Positive numbers are in the domain of every op.
  const std::vector<Tensor> inputs = ops::random_inputs(example, 5, {.low = 0.25, .high = 1.25});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const NodeId id = example.inputs[i];
    const Type type = graph.types(id)[0];
    // Weights are floats, or codes of some, of a known shape; what is computed with comes first.
    const bool is_weight = is_floating(type.dtype) || type.dtype == DType::U8;
    if (has_weights && i > 0 && type.num_elements().is_constant() && is_weight) {
      const std::string name = graph.name(id) + ".weight";
      const NodeId weight = graph.add({.name = name, .op = "state", .inputs = {}, .types = {type}});
      graph.replace_all_uses({id, 0}, {weight, 0});
      graph.erase(id);
      call.state[name] = inputs[i];
    } else {
      call.feed[graph.name(id)] = inputs[i];
    }
  }
  // An op such as packed_positions has sizes that no operand of its own shows.
  Type sizes{DType::F32, {}};
  for (const std::string& symbol : graph.symbols()) sizes.shape.push_back(Size::symbol(symbol));
  graph.add({.name = "sizes", .op = "input", .inputs = {}, .types = {sizes}});
  call.feed["sizes"] = Tensor(DType::F32, sizes.dims(ops::example_symbols()));
  if (graph.is(example.node, "input"))
    call.feed["y"] = random_feed(graph, ops::example_symbols(), 5)["y"];
  if (graph.is(example.node, "state")) call.state = random_state(graph, 6);
  run_pass("remove-dropout", graph);  // plans for inference drop nothing
  complete_roles(graph);
  call.graph = std::move(graph);
  return call;
}

}  // namespace lathe::engine
