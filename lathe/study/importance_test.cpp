#include "lathe/study/importance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/error.h"
#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

using Shares = std::vector<std::pair<std::string, double>>;

double share(const Shares& shares, std::string_view name) {
  for (const auto& [each, value] : shares)
    if (each == name) return value;
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Importance, OrdersParametersByWhatTheyMatter) {
  const Space space = {
      {"rate", shared(FloatDistribution{1e-5, 1, true})},
      {"useless", shared(FloatDistribution{})},
      {"depth", shared(IntDistribution{1, 8})},
      {"kind",
       shared(CategoricalDistribution{{std::string("a"), std::string("b"), std::string("c")}})},
      {"fixed", shared(IntDistribution{3, 3})}};
  History history({Direction::Maximize});
  run_sampler("random", space, history, 500, 1, [](const Assignment& point) {
    const double rate = std::log10(find_parameter(point, "rate")->value) + 3;
    const double kind = find_parameter(point, "kind")->value;
    return std::vector{-rate * rate - 0.5 * kind + 0.1 * find_parameter(point, "depth")->value};
  });
  const Shares shares = parameter_importance(history);
  ASSERT_EQ(shares.size(), 5u);
  EXPECT_EQ(shares[0].first, "rate");
  EXPECT_EQ(shares[1].first, "kind");
  EXPECT_EQ(shares[2].first, "depth");
  EXPECT_EQ(share(shares, "fixed"), 0);
  EXPECT_GT(shares[0].second, 0.5);
  double sum = 0;
  for (const auto& [name, value] : shares) sum += value;
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(Importance, EqualsPearsonsDivergenceByHand) {
  // Of 20 trials the best two are good. With the even prior, x is b in 2.5/3 of the good and in
  // 10.5/21 = 1/2 of all; y is b in 1.5/3 = 1/2 of both; z is always 2 among the good.
  const auto coin = shared(CategoricalDistribution{{std::string("a"), std::string("b")}});
  const auto die = shared(CategoricalDistribution{{0, 1, 2}});
  History history({Direction::Minimize});
  for (int i = 0; i < 20; ++i)
    add_finished(history,
                 {{"x", coin, i < 10 ? 1.0 : 0.0},
                  {"y", coin, i % 2 * 1.0},
                  {"z", die, i < 2 ? 2.0 : i % 3 * 1.0}},
                 {i * 1.0});
  const auto pearson = [](std::vector<double> good, std::vector<double> all) {
    double sum = 0;
    for (std::size_t i = 0; i < good.size(); ++i) sum += all[i] * std::pow(good[i] / all[i] - 1, 2);
    return sum;
  };
  const double x = pearson({0.5 / 3, 2.5 / 3}, {0.5, 0.5});
  const double third = 1.0 / 3;
  // i = 2..19 gives six of each choice, and the first two are 2.
  const double z = pearson({third / 3, third / 3, (2 + third) / 3},
                           {(6 + third) / 21, (6 + third) / 21, (8 + third) / 21});
  const Shares shares = parameter_importance(history);
  EXPECT_NEAR(share(shares, "x"), x / (x + z), 1e-12);
  EXPECT_NEAR(share(shares, "y"), 0, 1e-12);
  EXPECT_NEAR(share(shares, "z"), z / (x + z), 1e-12);
}

TEST(Importance, JudgesAConditionalParameterAmongTheTrialsThatHaveIt) {
  const Space space = {
      {"kind", shared(CategoricalDistribution{{std::string("a"), std::string("b")}})},
      {"width", shared(IntDistribution{1, 16}), "kind", {1}},
      {"noise", shared(IntDistribution{1, 16}), "kind", {1}}};
  History history({Direction::Minimize});
  run_sampler("random", space, history, 400, 1, [](const Assignment& point) {
    const Parameter* width = find_parameter(point, "width");
    return std::vector{width == nullptr ? 1.0 : std::abs(width->value - 8) / 8};
  });
  const Shares shares = parameter_importance(history);
  EXPECT_GT(share(shares, "width"), 5 * share(shares, "noise"));
}

TEST(Importance, AsksForOneObjectiveOrAllOfThem) {
  const Space space = {{"x", shared(FloatDistribution{})},
                       {"y", shared(FloatDistribution{})},
                       {"z", shared(FloatDistribution{})}};
  History history({Direction::Minimize, Direction::Minimize});
  run_sampler("qmc", space, history, 1024, 1, [](const Assignment& point) {
    return std::vector{point[0].value, point[1].value};
  });
  EXPECT_GT(share(parameter_importance(history, {.objective = 0}), "x"), 0.9);
  EXPECT_GT(share(parameter_importance(history, {.objective = 1}), "y"), 0.9);
  const Shares both = parameter_importance(history, {.objective = {}});
  EXPECT_GT(share(both, "x"), 0.3);
  EXPECT_GT(share(both, "y"), 0.3);
  EXPECT_LT(share(both, "z"), 0.2);
  EXPECT_THROW(parameter_importance(history, {.objective = 2}), UserError);
}

TEST(Importance, SaysNothingWithoutDifferences) {
  const auto unit = shared(FloatDistribution{});
  History history({Direction::Minimize});
  EXPECT_TRUE(parameter_importance(history).empty());
  for (int i = 0; i < 10; ++i) add_finished(history, {{"x", unit, i / 10.0}}, {1});
  EXPECT_TRUE(parameter_importance(history).empty());
}

}  // namespace
}  // namespace lathe::study
