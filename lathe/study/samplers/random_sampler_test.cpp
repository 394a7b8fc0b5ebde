#include "lathe/study/samplers/random_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lathe/core/registry.h"

namespace lathe::study {
namespace {

const std::vector<std::pair<std::string, Distribution>> kEveryKind = {
    {"f", FloatDistribution{.low = -1, .high = 2}},
    {"lf", FloatDistribution{.low = 1e-5, .high = 1e-1, .log = true}},
    {"sf", FloatDistribution{.low = 0, .high = 1, .step = 0.1}},
    {"i", IntDistribution{.low = 1, .high = 9}},
    {"si", IntDistribution{.low = 2, .high = 16, .step = 2}},
    {"li", IntDistribution{.low = 1, .high = 1024, .log = true}},
    {"c", CategoricalDistribution{.choices = {"a", "b", "c"}}},
};

std::vector<double> values(Sampler& sampler, int number, std::uint64_t seed = 0) {
  const History history({Direction::Minimize});
  const Proposal proposal{.seed = seed, .number = number};
  std::vector<double> result;
  for (const auto& [name, distribution] : kEveryKind)
    result.push_back(sampler.suggest(history, proposal, {}, name, distribution));
  return result;
}

std::unique_ptr<Sampler> random_sampler(const Options& options, std::uint64_t seed) {
  return Registry<SamplerKind>::instance().at("random", "sampler").make(options, seed, nullptr);
}

// Recorded from RandomSampler(seed=42) of Optuna 3.1.0.
TEST(RandomSampler, RepeatsOptunasSequenceUnderThePreset) {
  const auto sampler = random_sampler({{"preset", "optuna-3"}}, 42);
  const std::vector<std::vector<double>> expected = {
      {0.12362035654208747, 0.06351221010640701, 0.8, 6, 4, 2, 1},
      {1.1242177333881367, 1.2087541473056957e-05, 1.0, 8, 4, 2, 2},
      {0.2958350559263474, 0.0001461896279370495, 0.6000000000000001, 2, 6, 8, 1},
      {0.5427033152408347, 0.00234238498471129, 0.0, 6, 4, 1, 1}};
  for (int number = 0; number < 4; ++number)
    EXPECT_EQ(values(*sampler, number), expected[static_cast<std::size_t>(number)]);
}

TEST(RandomSampler, AnswersTheSameQuestionTheSameWay) {
  RandomSampler first;
  RandomSampler second;
  (void)values(first, 3);  // what was asked before does not matter
  EXPECT_EQ(values(first, 7, 11), values(second, 7, 11));
  EXPECT_NE(values(first, 7, 11), values(first, 8, 11));
  EXPECT_NE(values(first, 7, 11), values(first, 7, 12));
}

TEST(RandomSampler, CoversEveryValueEvenly) {
  RandomSampler sampler;
  std::vector<std::map<double, int>> counts(kEveryKind.size());
  constexpr int kTrials = 9000;
  for (int number = 0; number < kTrials; ++number) {
    const auto drawn = values(sampler, number);
    for (std::size_t i = 0; i < drawn.size(); ++i) ++counts[i][drawn[i]];
  }
  for (const auto& [index, num_values] :
       std::map<std::size_t, int>{{2, 11}, {3, 9}, {4, 8}, {6, 3}}) {
    ASSERT_EQ(counts[index].size(), static_cast<std::size_t>(num_values));
    // Five standard deviations of a binomial count.
    const double mean = static_cast<double>(kTrials) / num_values;
    for (const auto& [value, count] : counts[index])
      EXPECT_NEAR(count, mean, 5 * std::sqrt(mean)) << kEveryKind[index].first << " " << value;
  }
}

TEST(RandomSampler, NamesTheNearestPreset) {
  try {
    (void)random_sampler({{"preset", "optuna-33"}}, 0);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("\"preset\" \"optuna-33\""));
    EXPECT_THAT(error.hint(), testing::HasSubstr("optuna-3"));
  }
}

}  // namespace
}  // namespace lathe::study
