// Walks the registry: every example of every op survives the text form, and the CPU executor agrees
// with the reference on it, whether it has a kernel for the op or falls back.

#include <gtest/gtest.h>

#include "lathe/engine/testing/executor_cases.h"
#include "lathe/ops/example.h"

namespace lathe::engine {
namespace {

// The ops that a user can write; those of lowered graphs have no examples.
std::vector<std::string> ops_with_examples() {
  std::vector<std::string> names;
  for (const auto& [name, op] : OpRegistry::instance().all())
    if (!op.examples.empty()) names.push_back(name);
  return names;
}

class EveryExample : public testing::TestWithParam<std::string> {
 protected:
  std::vector<std::string> examples() const {
    return OpRegistry::instance().at(GetParam(), "op").examples;
  }
};

TEST_P(EveryExample, SurvivesTheTextForm) {
  for (const std::string& text : examples()) {
    SCOPED_TRACE(text);
    const Graph graph = ops::parse_example(text).graph;
    const Graph read = parse_graph(print(graph));
    EXPECT_EQ(print(read), print(graph));
    EXPECT_NO_THROW(verify(read));
  }
}

TEST_P(EveryExample, ComputesTheSameOnTheCpuAsByReference) {
  for (const std::string& text : examples()) {
    SCOPED_TRACE(text);
    ops::Example example = ops::parse_example(text);
    Graph& graph = example.graph;
    Feed feed;
    // Positive numbers are in the domain of every op.
    const std::vector<Tensor> inputs = ops::random_inputs(example, 5, {.low = 0.25, .high = 1.25});
    for (std::size_t i = 0; i < inputs.size(); ++i) feed[graph.name(example.inputs[i])] = inputs[i];
    // An op such as packed_positions has sizes that no operand of its own shows.
    Type sizes{DType::F32, {}, {}};
    for (const std::string& symbol : graph.symbols()) sizes.shape.push_back(Size::symbol(symbol));
    graph.add({.name = "sizes", .op = "input", .inputs = {}, .types = {sizes}});
    feed["sizes"] = Tensor(DType::F32, sizes.dims(ops::example_symbols()));
    if (GetParam() == "input") feed["y"] = random_feed(graph, ops::example_symbols(), 5)["y"];

    run_pass("remove-dropout", graph);  // plans for inference drop nothing

    const State state = random_state(graph, 6);
    const Feed expected = make_executor("reference", graph, state)->run(feed);
    expect_near(make_executor("cpu", graph, state)->run(feed), expected, 2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryExample, testing::ValuesIn(ops_with_examples()),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace lathe::engine
