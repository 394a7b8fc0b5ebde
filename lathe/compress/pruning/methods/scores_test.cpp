#include <gtest/gtest.h>

#include <cmath>

#include "lathe/compress/pruning/method.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

const Graph& two_linears() {
  static const Graph graph = parse_graph(R"(
    x = input() : f32[B,8]
    w = state() : f32[6,8]
    h = linear(x, w)
    a = relu(h)
    v = state() : f32[4,6]
    y = linear(a, v)
    output y <- y
  )");
  return graph;
}

State scores_of(const char* method, const char* granularity, const State& values,
                std::uint64_t seed = 0) {
  const Graph& graph = two_linears();
  const std::vector<PruningUnit> units =
      make_units(graph, find_prunable(graph), parse_granularity(granularity));
  return find_pruning_method(method).score({.units = units, .values = values, .seed = seed});
}

State zeros() {
  return {{"w", Tensor(DType::F32, {6, 8})}, {"v", Tensor(DType::F32, {4, 6})}};
}

TEST(L1Scores, AreMagnitudes) {
  State values = zeros();
  values.at("w").mutable_data<float>()[5] = -3;
  values.at("v").mutable_data<float>()[7] = 2;
  const State scores = scores_of("l1", "element", values);
  EXPECT_EQ(scores.at("w").data<float>()[5], 3);
  EXPECT_EQ(scores.at("v").data<float>()[7], 2);
}

State movement_scores(const State& values, const State& movement) {
  return find_pruning_method("movement")
      .score({.units = {}, .values = values, .movement = &movement});
}

// Half of w, all pushed alike: what matters is which way, and a layer's scales do not.
TEST(MovementScores, AreWhereMagnitudesAreAndArePushedTo) {
  State values = zeros(), movement = zeros();
  const std::span<float> w = values.at("w").mutable_data<float>();
  const std::span<float> v = values.at("v").mutable_data<float>();
  for (std::size_t i = 0; i < v.size(); ++i) {
    w[i] = i % 3 == 0 ? 2.0f : -2.0f;
    v[i] = -100 * w[i];
    movement.at("w").mutable_data<float>()[i] = i % 2 == 0 ? 3.0f : -3.0f;
    movement.at("v").mutable_data<float>()[i] = i % 2 == 0 ? 3e6f : -3e6f;
  }
  const State scores = movement_scores(values, movement);
  for (std::size_t i = 0; i < v.size(); ++i) {
    EXPECT_FLOAT_EQ(scores.at("w").data<float>()[i], i % 2 == 0 ? 2.0f : 0.0f);
    EXPECT_FLOAT_EQ(scores.at("v").data<float>()[i], i % 2 == 0 ? 2.0f : 0.0f);
  }
  EXPECT_EQ(scores.at("w").data<float>()[30], 0);
}

// Before the first step nothing has moved: magnitudes decide, and nothing is divided by zero.
TEST(MovementScores, BeginAsMagnitudes) {
  State values = zeros();
  values.at("w").mutable_data<float>()[5] = -3;
  const State scores = movement_scores(values, zeros());
  EXPECT_EQ(scores.at("w").data<float>()[5], 1);
  EXPECT_EQ(scores.at("w").data<float>()[6], 0);
  EXPECT_EQ(scores.at("v").data<float>()[0], 0);
}

TEST(LampScores, AreSharesOfWhatIsNotSmaller) {
  State values = zeros();
  const std::span<float> w = values.at("w").mutable_data<float>();
  w[0] = 1, w[1] = -2, w[2] = 2, w[3] = 4;
  values.at("v").mutable_data<float>()[7] = 1e-3f;
  const State scores = scores_of("lamp", "element", values);
  const std::span<const float> seen = scores.at("w").data<float>();
  EXPECT_FLOAT_EQ(seen[3], 1);
  EXPECT_FLOAT_EQ(seen[1], 4.0f / 20);  // of equal ones the first is the larger
  EXPECT_FLOAT_EQ(seen[2], 4.0f / 24);
  EXPECT_FLOAT_EQ(seen[0], 1.0f / 25);
  EXPECT_EQ(seen[4], 0);
  // The largest of each weight has the same score, whatever the weight's scale.
  EXPECT_FLOAT_EQ(scores.at("v").data<float>()[7], 1);
}

TEST(RandomScores, DependOnTheSeedAndThePlaceAlone) {
  const State first = scores_of("random", "element", zeros(), 7);
  EXPECT_TRUE(identical(first.at("w"), scores_of("random", "element", zeros(), 7).at("w")));
  EXPECT_FALSE(identical(first.at("w"), scores_of("random", "element", zeros(), 8).at("w")));
  EXPECT_NE(first.at("w").data<float>()[0], first.at("v").data<float>()[0]);
}

TEST(RandomScores, AreOneNumberForAGranule) {
  const State scores = scores_of("random", "neuron", zeros(), 7);
  const std::span<const float> w = scores.at("w").data<float>(), v = scores.at("v").data<float>();
  for (std::size_t neuron = 0; neuron < 6; ++neuron) {
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(w[neuron * 8 + i], w[neuron * 8]);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(v[i * 6 + neuron], w[neuron * 8]);
  }
  EXPECT_NE(w[0], w[8]);
}

// Means of 48 uniform numbers in each of many seeds: 0.5 within six standard errors.
TEST(RandomScores, AreUniform) {
  double sum = 0;
  constexpr int kSeeds = 200;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Tensor scores = scores_of("random", "element", zeros(), seed).at("w");
    for (const float value : scores.data<float>()) sum += static_cast<double>(value);
  }
  constexpr double kCount = 48.0 * kSeeds;
  EXPECT_NEAR(sum / kCount, 0.5, 6 * std::sqrt(1.0 / 12 / kCount));
}

TEST(PruningMethods, AreNamedWhenUnknown) {
  EXPECT_NE(error_text([] { find_pruning_method("l2"); }).find("unknown method \"l2\""),
            std::string::npos);
}

}  // namespace
}  // namespace lathe::compress
