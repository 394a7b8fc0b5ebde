#include "lathe/study/samplers/tpe_options.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

std::string message(const Options& options) {
  try {
    read_tpe_options(options);
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

TEST(TpeOptions, CountsATenthOfTheTrialsAsGoodUpToALimit) {
  const TpeOptions options;
  EXPECT_EQ(options.num_below(0, 1), 0u);
  EXPECT_EQ(options.num_below(11, 1), 2u);
  EXPECT_EQ(options.num_below(1000, 1), 25u);
  EXPECT_EQ(tpe_preset("optuna-5").num_below(1000, 2), 100u);
  EXPECT_EQ(tpe_preset("optuna-4").num_below(1000, 2), 25u);
}

TEST(TpeOptions, KnowHowOptunasVersionsDiffer) {
  const TpeOptions three = tpe_preset("optuna-3");
  const TpeOptions four = tpe_preset("optuna-4");
  const TpeOptions five = tpe_preset("optuna-5");
  EXPECT_EQ(three.multivariate, false);
  EXPECT_EQ(four.multivariate, false);
  EXPECT_FALSE(five.multivariate.has_value());  // it depends on the number of objectives
  EXPECT_FALSE(four.constant_liar);
  EXPECT_TRUE(five.constant_liar);
  EXPECT_EQ(three.independent_bandwidth, Bandwidth::NeighborsWithPrior);
  EXPECT_EQ(four.independent_bandwidth, Bandwidth::Neighbors);
  EXPECT_EQ(four.kernels.bandwidth, Bandwidth::Scott);
  EXPECT_EQ(five.kernels.bandwidth, Bandwidth::Neighbors);
  EXPECT_FALSE(three.kernels.discrete_log);
  EXPECT_TRUE(four.kernels.discrete_log);
  EXPECT_TRUE(four.weigh_by_hypervolume);
  EXPECT_FALSE(five.weigh_by_hypervolume);
}

TEST(TpeOptions, ChangeAPresetByWhatIsSaid) {
  const TpeOptions options = read_tpe_options({{"preset", "optuna-3"},
                                               {"multivariate", "true"},
                                               {"gamma", "0.25"},
                                               {"gamma_limit", "50"},
                                               {"candidates", "48"},
                                               {"weights", "uniform"},
                                               {"prior_weight", "0.5"}});
  EXPECT_EQ(options.multivariate, true);
  EXPECT_EQ(options.num_below(100, 1), 25u);
  EXPECT_EQ(options.candidates, 48u);
  EXPECT_EQ(options.recent, 0u);
  EXPECT_EQ(options.kernels.prior_weight, 0.5);
}

TEST(TpeOptions, RefuseWhatMakesNoSense) {
  EXPECT_EQ(message({{"multivariate", "false"}, {"group", "true"}}),
            "group=true: needs multivariate=true");
  EXPECT_NE(message({{"gamma", "2"}}), "no error");
  EXPECT_NE(message({{"prior_weight", "0"}}), "no error");
  EXPECT_NE(message({{"candidates", "0"}}), "no error");
}

}  // namespace
}  // namespace lathe::study
