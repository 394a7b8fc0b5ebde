#include "lathe/engine/idle_masks.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

Graph masked_layer() {
  return parse_graph(R"(
    symbols T
    x = input() : f32[T,4]
    codes = state() : u8[2,4]
    scale = state() : f32[2]
    mask = state() : f32[2,4]
    w = decode(codes, none, scale) {columns=4, format="int:8,channel"} : f32[2,4]
    w/masked = mul(w, mask) : f32[2,4]
    q = quantize(x) {format="int:8,dynamic"} : f32[T,4]
    y = linear(q, w/masked) : f32[T,2]
    output y <- y
  )");
}
State masked_state(std::uint8_t hidden) {
  return {{"codes", Tensor::from<std::uint8_t>({2, 4}, {5, hidden, 250, 7, 1, 2, 0, 4})},
          {"scale", Tensor::from<float>({2}, {0.5f, 0.25f})},
          {"mask", Tensor::from<float>({2, 4}, {1, 0, 1, 1, 1, 1, 0, 1})}};
}
const Feed kFeed = {{"x", Tensor::from<float>({2, 4}, {1, -2, 3, -4, 0.5f, 6, -7, 8})}};

TEST(IdleMasks, GoWhereTheyHideZerosAlone) {
  Graph graph = masked_layer();
  EXPECT_EQ(remove_idle_masks(graph, masked_state(0)),
            (std::set<std::string>{"codes", "mask", "scale"}));
  EXPECT_EQ(print(graph, "y"), "y = linear(q, w) : f32[T,2]");
}

TEST(IdleMasks, StayWhereTheyHideANumber) {
  Graph graph = masked_layer();
  EXPECT_TRUE(remove_idle_masks(graph, masked_state(9)).empty());
  EXPECT_EQ(print(graph, "y"), "y = linear(q, w/masked) : f32[T,2]");
}

bool multiplies_codes(const Executor& executor) {
  for (const PlannedStep& step : executor.report().steps)
    if (step.op == "code_linear") return true;
  return false;
}

TEST(IdleMasks, LeaveProductsOfWholeNumbersWithTheSameBits) {
  Graph unmasked = masked_layer();
  unmasked.replace_all_uses({unmasked.at("w/masked"), 0}, {unmasked.at("w"), 0});
  const State state = masked_state(0);
  const auto masked = make_executor(masked_layer(), state, {.uses_integers = true});
  EXPECT_TRUE(multiplies_codes(*masked));
  expect_identical(masked->run(kFeed),
                   make_executor(unmasked, state, {.uses_integers = true})->run(kFeed));
  EXPECT_FALSE(
      multiplies_codes(*make_executor(masked_layer(), masked_state(9), {.uses_integers = true})));
}

TEST(IdleMasks, RefuseAnotherMaskAfterwards) {
  const auto executor = make_executor(masked_layer(), masked_state(0), {.uses_integers = true});
  EXPECT_THROW(
      executor->set_state({{"mask", Tensor::from<float>({2, 4}, {1, 1, 1, 1, 1, 1, 1, 1})}}),
      InternalError);
}

}  // namespace
}  // namespace lathe::engine
