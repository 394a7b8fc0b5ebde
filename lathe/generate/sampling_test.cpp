#include "lathe/generate/sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "lathe/core/testing/error_text.h"

namespace lathe::generate {
namespace {

// Probabilities 0.5, 0.3, 0.15 and 0.05.
const std::vector<float> kLogits{std::log(0.3f), std::log(0.5f), std::log(0.05f), std::log(0.15f)};

std::array<double, 4> shares(const Sampling& sampling) {
  constexpr int kDraws = 20000;
  std::array<double, 4> counts{};
  for (std::uint32_t i = 0; i < kDraws; ++i)
    counts[static_cast<std::size_t>(choose_token(kLogits, sampling, 3, i))] += 1.0 / kDraws;
  return counts;
}

// The deviation of a share of 20,000 draws is at most sqrt(1/4 / 20000), four of which are 0.015.
void expect_shares(const Sampling& sampling, const std::array<double, 4>& expected) {
  const std::array<double, 4> found = shares(sampling);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 0.015) << "token " << i;
}

TEST(Sampling, TakesTheFirstOfTheLikeliestWithoutATemperature) {
  EXPECT_EQ(choose_token(kLogits, {}, 0, 0), 1);
  EXPECT_EQ(choose_token(std::vector<float>{1, 3, 3}, {}, 0, 0), 1);
}

TEST(Sampling, ChoosesNoTokenBesideANaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits : {std::vector<float>{nan, 1, 2}, {1, nan, 2}, {2, 1, nan}})
    for (const double temperature : {0.0, 1.0})
      EXPECT_EQ(choose_token(logits, {.temperature = temperature}, 0, 0), kNoToken);
}

TEST(Sampling, DrawsNoTokenWhoseLikelihoodIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Sampling drawing{.temperature = 1};
  EXPECT_EQ(choose_token(std::vector<float>{1, infinity, 2}, drawing, 0, 0), kNoToken);
  EXPECT_EQ(choose_token(std::vector<float>{-infinity, -infinity}, drawing, 0, 0), kNoToken);
  EXPECT_EQ(choose_token(std::vector<float>{-infinity, 1, -infinity}, drawing, 0, 0), 1);
}

TEST(Sampling, DrawsTokensAsOftenAsTheyAreLikely) {
  expect_shares({.temperature = 1}, {0.3, 0.5, 0.05, 0.15});
  const double sum = 0.09 + 0.25 + 0.0025 + 0.0225;  // squares: half the temperature
  expect_shares({.temperature = 0.5}, {0.09 / sum, 0.25 / sum, 0.0025 / sum, 0.0225 / sum});
}

TEST(Sampling, DrawsAmongTheLikeliest) {
  expect_shares({.temperature = 1, .top_k = 2}, {0.3 / 0.8, 0.5 / 0.8, 0, 0});
  // 0.5 and 0.3 are not yet 0.9, with 0.15 they are.
  expect_shares({.temperature = 1, .top_p = 0.9}, {0.3 / 0.95, 0.5 / 0.95, 0, 0.15 / 0.95});
  expect_shares({.temperature = 1, .top_p = 0.1}, {0, 1, 0, 0});
}

TEST(Sampling, DependsOnSeedPromptAndPositionAlone) {
  int same = 0, others = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const auto draw = [&](std::uint64_t seed, std::uint32_t prompt) {
      return choose_token(kLogits, {.temperature = 1, .seed = seed}, prompt, i);
    };
    same += draw(1, 2) == draw(1, 2) ? 1 : 0;
    others += draw(1, 2) == draw(2, 2) && draw(1, 2) == draw(1, 3) ? 1 : 0;
  }
  EXPECT_EQ(same, 100);
  EXPECT_LT(others, 60);
}

TEST(Sampling, RefusesNumbersThatMeanNothing) {
  const auto refusal = [](const Sampling& sampling) {
    return error_text([&] { check_sampling(sampling); });
  };
  EXPECT_EQ(refusal({.temperature = -1}), "temperature is -1: expected 0 or more");
  EXPECT_EQ(refusal({.temperature = 1, .top_k = -1}), "top-k is -1: expected 0 or more");
  EXPECT_EQ(refusal({.temperature = 1, .top_p = 0}), "top-p is 0: expected above 0 and at most 1");
  EXPECT_EQ(refusal({.top_k = 5}),
            "top-k says nothing at temperature 0, where the likeliest token is taken");
}

}  // namespace
}  // namespace lathe::generate
