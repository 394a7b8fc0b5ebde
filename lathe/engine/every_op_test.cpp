// Walks the registry: every example of every op survives the text form, and the CPU executor agrees
// with the reference on it. An op that the CPU has a step for must run on that step: a step that
// stood back would leave the reference compared with itself.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

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

// A loss that forgets a NaN lets a step of training go on with it. Low bits of a NaN are no number.
TEST_P(EveryExample, IsNanOnTheCpuWhereItIsByReference) {
  for (const std::string& text : examples()) {
    SCOPED_TRACE(text);
    const ExampleCall call = make_example_call(text, false);
    for (const auto& [operand, values] : call.feed) {
      if (values.dtype() != DType::F32 || values.num_elements() == 0 || operand == "sizes")
        continue;
      for (const std::uint32_t bits : {0x7fc00000u, 0x7fc00123u, 0xffc001ffu}) {
        Feed feed = call.feed;
        feed[operand].mutable_data<float>().back() = std::bit_cast<float>(bits);
        const Feed expected =
            make_executor(call.graph, call.state, {.device = "reference"})->run(feed);
        for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512}) {
          if (!is_supported(isa)) continue;
          const Feed actual = make_executor(call.graph, call.state, {.isa = isa})->run(feed);
          for (const auto& [name, tensor] : expected)
            for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
              ASSERT_TRUE(!std::isnan(tensor.at(i)) || std::isnan(actual.at(name).at(i)))
                  << std::string(lathe::name(isa)) << ", " << operand << " " << std::hex << bits
                  << ": " << name << "[" << std::dec << i << "] is " << actual.at(name).at(i);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryExample, testing::ValuesIn(ops_with_examples()),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace lathe::engine
