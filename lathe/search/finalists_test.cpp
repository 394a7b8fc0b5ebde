#include "lathe/search/finalists.h"

#include <gtest/gtest.h>

namespace lathe::search {
namespace {

// A trial of its own candidate, told apart by the recipe's epochs.
Finalist trial(int number, double found, int epochs, double cost = 0) {
  Finalist trial{.sampler = "random", .trial = number, .found = found, .cost = cost};
  trial.candidate.recipe["epochs"] = epochs;
  return trial;
}

std::vector<int> numbers(const std::vector<Finalist>& finalists) {
  std::vector<int> numbers;
  for (const Finalist& each : finalists) numbers.push_back(each.trial);
  return numbers;
}

TEST(Finalists, AreTheBestByAccuracyLessCost) {
  const std::vector<Finalist> trials = {trial(0, 0.80, 1), trial(1, 0.90, 2, 0.15),
                                        trial(2, 0.85, 3), trial(3, 0.70, 4)};
  EXPECT_EQ(numbers(choose_finalists(trials, {.finalists = 2})), (std::vector{2, 0}));
  EXPECT_EQ(numbers(choose_finalists(trials, {.finalists = 9})), (std::vector{2, 0, 1, 3}));
}

TEST(Finalists, HaveEachCandidateOnceByItsFirstTrial) {
  const std::vector<Finalist> trials = {trial(0, 0.8, 1), trial(1, 0.8, 1), trial(2, 0.7, 2)};
  EXPECT_EQ(numbers(choose_finalists(trials, {.finalists = 2})), (std::vector{0, 2}));
}

TEST(Finalists, HaveOneFormatForAllLayersBesidesTheBestWhereThatWasAskedFor) {
  std::vector<Finalist> trials = {trial(0, 0.9, 1), trial(1, 0.8, 2), trial(2, 0.5, 3),
                                  trial(3, 0.8, 2)};
  trials[2].is_uniform = true;
  trials[3].is_uniform = true;  // of the same candidate as a trial that a sampler drew
  EXPECT_EQ(numbers(choose_finalists(trials, {.finalists = 1, .tries_uniform = true})),
            (std::vector{0, 1, 2}));
  EXPECT_EQ(numbers(choose_finalists(trials, {.finalists = 1})), (std::vector{0}));
}

TEST(Finalists, OfAFrontAreTheBestOfEachPartOfItsCosts) {
  std::vector<Finalist> trials = {trial(0, 0.90, 1), trial(1, 0.89, 2), trial(2, 0.88, 3),
                                  trial(3, 0.60, 4), trial(4, 0.70, 5)};
  const std::vector<double> parameters = {10, 11, 12, 900, 1000};
  for (std::size_t each = 0; each < trials.size(); ++each)
    trials[each].costs["parameters"] = parameters[each];
  // The border of two parts is where costs are 100, as many times the least as the most is its.
  EXPECT_EQ(numbers(choose_finalists(trials, {.front = "parameters", .finalists = 2})),
            (std::vector{0, 4}));
}

// One that costs a little more than a uniform format is no answer to it, however good.
TEST(Finalists, OfAFrontHaveOneThatCostsNoMoreThanEachUniformFormat) {
  std::vector<Finalist> trials = {trial(0, 0.90, 1), trial(1, 0.91, 2), trial(2, 0.80, 3),
                                  trial(3, 0.85, 4), trial(4, 0.60, 5), trial(5, 0.95, 6)};
  const std::vector<double> bits = {2, 2.1, 1.9, 4, 1, 1};
  for (std::size_t each = 0; each < trials.size(); ++each)
    trials[each].costs["weight-bits"] = bits[each];
  for (const std::size_t uniform : {0, 3, 4}) trials[uniform].is_uniform = true;
  EXPECT_EQ(numbers(choose_finalists(
                trials, {.front = "weight-bits", .finalists = 3, .tries_uniform = true})),
            (std::vector{5, 1, 0, 3, 2, 4}));
  // Without them both halves are as many times the part before: of 1 to 2 bits and 2 to 4.
  EXPECT_EQ(numbers(choose_finalists(trials, {.front = "weight-bits", .finalists = 2})),
            (std::vector{5, 1}));
}

// Accuracies of one training are luck where all are good; losses tell more.
TEST(Finalists, OfAFrontAreThoseOfTheLeastLossInTheirParts) {
  std::vector<Finalist> trials = {trial(0, 0.91, 1), trial(1, 0.90, 2), trial(2, 0.89, 3)};
  const std::vector<double> losses = {0.30, 0.28, 0.29};
  for (std::size_t each = 0; each < trials.size(); ++each) {
    trials[each].costs["weight-bits"] = 2;
    trials[each].found_loss = losses[each];
  }
  const SearchOptions front{.front = "weight-bits", .finalists = 1};
  EXPECT_EQ(numbers(choose_finalists(trials, front)), (std::vector{1}));
  trials[2].found_loss.reset();  // a study of before losses were kept goes on by accuracies
  EXPECT_EQ(numbers(choose_finalists(trials, front)), (std::vector{0}));
}

TEST(Finalist, HasTheMeanOfItsAccuracies) {
  const Finalist finalist{.sampler = "tpe", .accuracies = {0.5, 0.75}, .losses = {0.25, 0.5}};
  EXPECT_DOUBLE_EQ(finalist.mean(), 0.625);
  EXPECT_DOUBLE_EQ(finalist.mean_loss(), 0.375);
}

}  // namespace
}  // namespace lathe::search
