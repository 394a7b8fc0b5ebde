// Walks the registry: every example of every op survives the text form, and the CPU executor agrees
// with the reference on it. An op that the CPU has a step for must run on that step: a step that
// stood back would leave the reference compared with itself.

#include <gtest/gtest.h>

#include "lathe/core/role.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/testing/example_calls.h"
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

// Whether the CPU has a step of its own for every node that an op's call is lowered to.
bool runs_on_cpu_steps(const Graph& graph) {
  return count_fallbacks(graph, find_backend("cpu")).empty();
}

TEST_P(EveryExample, ComputesTheSameOnTheCpuAsByReference) {
  bool is_on_cpu = false;
  for (const std::string& text : examples()) {
    SCOPED_TRACE(text);
    for (const bool has_weights : {false, true}) {
      SCOPED_TRACE(has_weights ? "weights are states" : "all operands are inputs");
      const ExampleCall call = make_example_call(text, has_weights);
      is_on_cpu = is_on_cpu || runs_on_cpu_steps(call.graph);
      const Feed expected =
          make_executor(call.graph, call.state, {.device = "reference"})->run(call.feed);
      expect_near(make_executor(call.graph, call.state)->run(call.feed), expected, 2e-6);
    }
  }
  if (Registry<CpuKernel>::instance().find(GetParam()) != nullptr) {
    EXPECT_TRUE(is_on_cpu) << "the CPU has a step for " << GetParam()
                           << ", but none of its examples ran on it";
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryExample, testing::ValuesIn(ops_with_examples()),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace lathe::engine
