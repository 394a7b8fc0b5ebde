#include "lathe/study/samplers/tpe_sampler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/study/testing/test_play.h"

namespace lathe::study {
namespace {

Distribution choices(int count) {
  CategoricalDistribution result;
  for (int i = 0; i < count; ++i) result.choices.push_back("c" + std::to_string(i));
  return result;
}

// A different number for nearly every combination, the same in the Python script that recorded.
double mixed(const std::vector<double>& values) {
  int total = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    total = (total * 31 + static_cast<int>(values[i]) * (2 * static_cast<int>(i) + 7)) % 1009;
  return total;
}

void four_choices(const Play::Suggest& suggest, TrialRecord& trial) {
  trial.values = {mixed({suggest("b", choices(4)), suggest("a", choices(3)),
                         suggest("d", choices(9)), suggest("c", choices(5))})};
}

std::string played(const std::string& sampler, std::uint64_t seed, int num_trials) {
  const auto made = make_sampler(sampler, seed);
  Play play(*made, seed);
  std::string result;
  for (int i = 0; i < num_trials; ++i) {
    for (const Parameter& parameter : play.run(four_choices).parameters)
      result += std::to_string(static_cast<int>(parameter.value));
    result += i + 1 < num_trials ? " " : "";
  }
  return result;
}

// Both sequences were recorded from Optuna 3.1.0 with seed 8; each group of digits is one trial's
// choices for b, a, d and c.
TEST(TpeSampler, RepeatsOptunasMultivariateSequence) {
  EXPECT_EQ(played("tpe:preset=optuna-3,multivariate=true", 8, 50),
            "1251 0211 0080 0281 2031 3021 3250 0044 2084 2084 2224 2084 2003 1184 1182 1104 2164 "
            "3114 2164 1163 0162 2164 2170 2260 1184 1130 1284 1144 1184 0184 1184 1184 1181 1074 "
            "1154 1083 3184 1183 1272 0101 1134 1184 1180 1174 1114 3141 0234 1184 1213 2184");
}

TEST(TpeSampler, RepeatsOptunasIndependentSequence) {
  EXPECT_EQ(played("tpe:preset=optuna-3,startup=30", 8, 50),
            "1251 0211 0080 0281 2031 3021 3250 0044 2084 2084 2273 2203 0081 3010 0051 1281 2280 "
            "3013 2022 1283 1111 0052 0063 3264 3271 0134 0152 1143 1013 3000 1022 1002 2063 3000 "
            "3000 3000 3000 3000 3000 3000 3000 3000 3000 3000 3000 3000 3000 3030 3000 3040");
}

// A worker that starts in the middle knows the history and nothing else.
TEST(TpeSampler, ContinuesInAnotherProcess) {
  for (const char* text : {"tpe", "tpe:multivariate=false,group=false"}) {
    const auto first = make_sampler(text, 5);
    Play play(*first, 5);
    for (int i = 0; i < 30; ++i) play.run(four_choices);
    const Proposal proposal{.seed = 5, .number = 30};
    const auto second = make_sampler(text, 5);
    const Assignment a = first->propose(play.history(), proposal);
    const Assignment b = second->propose(play.history(), proposal);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].value, b[i].value);
    for (const char* name : {"a", "new"})
      EXPECT_EQ(first->suggest(play.history(), proposal, {}, name, choices(9)),
                second->suggest(play.history(), proposal, {}, name, choices(9)));
  }
}

// Results may be learned of in any order (other workers finish when they like).
TEST(TpeSampler, DoesNotDependOnTheOrderOfResults) {
  const auto first = make_sampler("tpe", 5);
  Play play(*first, 5);
  for (int i = 0; i < 40; ++i) play.run(four_choices);
  History reversed({Direction::Minimize});
  std::vector<TrialRecord> waiting(play.history().trials().begin(), play.history().trials().end());
  for (TrialRecord& trial : waiting) trial.state = TrialState::Running;
  reversed.change([&](auto& trials) { trials = waiting; });
  for (std::size_t i = 40; i-- > 0;)
    reversed.change([&](auto& trials) { trials[i] = play.history().trials()[i]; });
  const auto second = make_sampler("tpe", 5);
  const Proposal proposal{.seed = 5, .number = 40};
  const Assignment a = first->propose(play.history(), proposal);
  const Assignment b = second->propose(reversed, proposal);
  ASSERT_EQ(a.size(), 4u);
  ASSERT_EQ(b.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(a[i].value, b[i].value);
}

TEST(TpeSampler, SurvivesStoredNonsense) {
  History history({Direction::Minimize});
  const auto list = std::make_shared<const Distribution>(choices(3));
  const auto log =
      std::make_shared<const Distribution>(FloatDistribution{.low = 1, .high = 9, .log = true});
  history.change([&](auto& trials) {
    for (int i = 0; i < 40; ++i)
      trials.push_back({.number = i,
                        .state = TrialState::Complete,
                        .values = {i % 7 == 0 ? std::nan("") : i},
                        .parameters = {{"a", list, i % 2 == 0 ? -1.0 : 1e9}, {"x", log, -3.0}}});
  });
  const auto sampler = make_sampler("tpe", 1);
  const Proposal proposal{.seed = 1, .number = 40};
  (void)sampler->propose(history, proposal);
  EXPECT_TRUE(contains(*list, sampler->suggest(history, proposal, {}, "a", *list)));
  EXPECT_TRUE(contains(*log, sampler->suggest(history, proposal, {}, "x", *log)));
}

TEST(TpeSampler, TurnsDownWhatIsNotAllowed) {
  const auto sampler = make_sampler("tpe:startup=5,candidates=64", 1);
  Play play(*sampler, 1);
  for (int i = 0; i < 20; ++i) play.run(four_choices);
  Proposal proposal{.seed = 1, .number = 20};
  proposal.is_allowed = [](const Assignment& point) {
    for (const Parameter& parameter : point)
      if (parameter.name == "a" && parameter.value == 1) return false;
    return true;
  };
  for (; proposal.number < 40; ++proposal.number)
    EXPECT_TRUE(proposal.is_allowed(sampler->propose(play.history(), proposal)));
}

// Running trials repel: without the lie all workers would ask for the same point.
TEST(TpeSampler, KeepsParallelWorkersApart) {
  std::map<bool, double> share;
  for (const bool lies : {false, true}) {
    const auto sampler =
        make_sampler(std::string("tpe:multivariate=false,group=false,constant_liar=") +
                         (lies ? "true" : "false"),
                     3);
    History history({Direction::Minimize});
    const auto list = std::make_shared<const Distribution>(choices(4));
    history.change([&](auto& trials) {
      for (int i = 0; i < 20; ++i)
        trials.push_back({.number = i,
                          .state = TrialState::Complete,
                          .values = {static_cast<double>(i % 4)},
                          .parameters = {{"a", list, static_cast<double>(i % 4)}}});
      for (int i = 20; i < 40; ++i)
        trials.push_back({.number = i, .parameters = {{"a", list, 0.0}}});
    });
    double zeros = 0;
    for (int number = 40; number < 80; ++number)
      zeros += sampler->suggest(history, {.seed = 3, .number = number}, {}, "a", *list) == 0;
    share[lies] = zeros / 40;
  }
  EXPECT_GT(share[false], 0.9);
  EXPECT_LT(share[true], 0.5);
}

}  // namespace
}  // namespace lathe::study
