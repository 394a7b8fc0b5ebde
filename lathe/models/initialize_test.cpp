#include "lathe/models/initialize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::models {
namespace {

TEST(Initialize, DependsOnTheSeedAndTheNameAlone) {
  const char* const weight = "w = state() {init=\"normal\", scale=0.5} : f32[7,5]\n";
  const State alone = initialize(parse_graph(weight), 1);
  const State with_others = initialize(
      parse_graph(std::string("v = state() {init=\"normal\", scale=1.0} : f32[9]\n") + weight), 1);
  EXPECT_TRUE(identical(alone.at("w"), with_others.at("w")));
  EXPECT_FALSE(identical(alone.at("w"), initialize(parse_graph(weight), 2).at("w")));
  const State renamed =
      initialize(parse_graph("u = state() {init=\"normal\", scale=0.5} : f32[7,5]"), 1);
  EXPECT_FALSE(identical(alone.at("w"), renamed.at("u")));
}

TEST(Initialize, StartsALongerStateWithTheSameNumbers) {
  const State few = initialize(parse_graph("w = state() {init=\"normal\", scale=1.0} : f32[5]"), 1);
  const State many =
      initialize(parse_graph("w = state() {init=\"normal\", scale=1.0} : f32[90]"), 1);
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(few.at("w").at(i), many.at("w").at(i));
}

// Of 100,000 normal numbers the mean has a standard error of 0.0032 scales and the deviation one of
// 0.0022; five of them are allowed.
TEST(Initialize, DrawsNormalNumbersOfTheScaleAskedFor) {
  const State state =
      initialize(parse_graph("w = state() {init=\"normal\", scale=0.02} : f32[100000]"), 3);
  double sum = 0, squares = 0, beyond_two = 0;
  const Tensor& w = state.at("w");
  for (std::int64_t i = 0; i < w.num_elements(); ++i) {
    ASSERT_TRUE(std::isfinite(w.at(i)));
    sum += w.at(i) / 0.02;
    squares += w.at(i) * w.at(i) / 0.0004;
    beyond_two += std::fabs(w.at(i)) > 0.04 ? 1 : 0;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.016);
  EXPECT_NEAR(std::sqrt(squares / 1e5), 1, 0.011);
  EXPECT_NEAR(beyond_two / 1e5, 0.0455, 0.0033);  // the share beyond two deviations
}

// Uniform numbers within a bound have variance bound^2/3; of 100,000 of them the mean has a
// standard error of 0.0018 bounds, and their mean square one of 0.00094 bounds^2.
TEST(Initialize, DrawsUniformNumbersWithinTheBoundAskedFor) {
  const State state =
      initialize(parse_graph("w = state() {init=\"uniform\", scale=0.5} : f32[100000]"), 3);
  double sum = 0, squares = 0;
  const Tensor& w = state.at("w");
  for (std::int64_t i = 0; i < w.num_elements(); ++i) {
    ASSERT_LE(std::fabs(w.at(i)), 0.5);
    sum += w.at(i) / 0.5;
    squares += w.at(i) * w.at(i) / 0.25;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.0091);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.0047);
}

TEST(Initialize, FillsOnesAndZeros) {
  const State state =
      initialize(parse_graph("a = state() {init=\"ones\"} : f32[3]\nb = state() : i32[2]"), 1);
  EXPECT_TRUE(identical(state.at("a"), Tensor::from<float>({3}, {1, 1, 1})));
  EXPECT_TRUE(identical(state.at("b"), Tensor::from<std::int32_t>({2}, {0, 0})));
}

TEST(Initialize, NamesTheStateItCannotStart) {
  const auto refusal = [](const char* text) {
    return error_text([&] { initialize(parse_graph(text), 1); });
  };
  EXPECT_EQ(refusal("w = state() {init=\"norml\"} : f32[3]"),
            "unknown init of state \"w\" \"norml\"; known: normal, ones, uniform, zeros\n"
            "hint: did you mean \"normal\"?");
  EXPECT_EQ(refusal("w = state() {init=\"ones\"} : i32[3]"),
            "state \"w\": init \"ones\" needs f32, not i32[3]");
}

}  // namespace
}  // namespace lathe::models
