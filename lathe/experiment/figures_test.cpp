#include "lathe/experiment/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lathe::experiment {
namespace {

using testing::ElementsAre;
using testing::Pair;

ModelEvaluation of_numbers(double error, std::optional<double> pearson) {
  ModelEvaluation result;
  result.numbers = train::NumberScore{.loss = error, .pearson = pearson, .spearman = pearson};
  return result;
}

TEST(Figures, OfClassesAreComparedInPoints) {
  ModelEvaluation before, after;
  train::Evaluation& first = before.classes.emplace();
  first.accuracy = 0.75, first.accuracy_low = 0.5, first.accuracy_high = 0.9;
  train::Evaluation& second = after.classes.emplace();
  second.accuracy = 0.5, second.accuracy_low = 0.25, second.accuracy_high = 0.75;
  EXPECT_THAT(compare_figures(before, after),
              ElementsAre(Pair("accuracy",
                               "0.7500 (0.5000 to 0.9000) before, 0.5000 (0.2500 to 0.7500) after: "
                               "-25.00 points")));
  EXPECT_EQ(figures_json(before, after).dump(), R"({"accuracy_before":0.75,"accuracy":0.5})");
}

TEST(Figures, OfNumbersAreTheirErrorAndCorrelations) {
  EXPECT_THAT(compare_figures(of_numbers(0.25, 0.5), of_numbers(0.5, 0.75)),
              ElementsAre(Pair("error", "0.2500 before, 0.5000 after: +0.2500  (mean squared)"),
                          Pair("Pearson", "0.5000 before, 0.7500 after: +0.2500"),
                          Pair("Spearman", "0.5000 before, 0.7500 after: +0.2500")));
}

TEST(Figures, ACorrelationThatIsMissingOnOneSideIsLeftOut) {
  EXPECT_EQ(figures_json(of_numbers(0.25, 0.5), of_numbers(0.5, {})).dump(),
            R"({"mean_squared_error_before":0.25,"mean_squared_error":0.5})");
}

TEST(Figures, OfSetsOfLabelsAreBothKindsOfF1) {
  ModelEvaluation both;
  both.sets.emplace().micro_f1 = 0.5;
  both.sets->macro_f1 = 0.25;
  EXPECT_THAT(
      compare_figures(both, both),
      ElementsAre(Pair("F1", "0.5000 before, 0.5000 after: +0.00 points  (of all labels together)"),
                  Pair("mean F1", "0.2500 before, 0.2500 after: +0.00 points  (over labels)")));
}

}  // namespace
}  // namespace lathe::experiment
