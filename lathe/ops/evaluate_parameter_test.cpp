#include "lathe/ops/evaluate_parameter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

Graph masked() {
  return parse_graph(R"(
    symbols B
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    m = state() {role="mask"} : f32[2,2]
    pruned = mul(w, m) : f32[2,2]
    y = linear(x, pruned) : f32[B,2]
    output y <- y
  )");
}

State masked_state() {
  return {{"w", Tensor::from<float>({2, 2}, {1, 2, 3, 4})},
          {"m", Tensor::from<float>({2, 2}, {1, 0, 0, 1})}};
}

TEST(EvaluateParameter, IsTheStateItself) {
  const Graph graph = masked();
  const Tensor value = evaluate_parameter(graph, masked_state(), {graph.at("w"), 0});
  EXPECT_THAT(value.data<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(EvaluateParameter, ComputesWhatDependsOnStatesAlone) {
  const Graph graph = masked();
  const Tensor value = evaluate_parameter(graph, masked_state(), {graph.at("pruned"), 0});
  EXPECT_THAT(value.data<float>(), ElementsAre(1, 0, 0, 4));
}

TEST(EvaluateParameter, NamesTheInputThatAValueDependsOn) {
  const Graph graph = masked();
  try {
    evaluate_parameter(graph, masked_state(), {graph.at("y"), 0});
    FAIL() << "a value of the input was taken for a parameter";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "\"y\" is no parameter: it depends on the input \"x\"");
  }
}

TEST(EvaluateParameter, NamesAStateWithoutAValue) {
  const Graph graph = masked();
  State state = masked_state();
  state.erase("m");
  try {
    evaluate_parameter(graph, state, {graph.at("pruned"), 0});
    FAIL() << "a missing value was made up";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "state \"m\" has no value");
  }
}

}  // namespace
}  // namespace lathe::ops
