#include "lathe/compress/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lathe::compress {
namespace {

using testing::ElementsAre;

TEST(Budget, GivesTheMostSensitiveItemTheMostBits) {
  // Two tables of 100 numbers at 2, 4 or 8 bits; the second minds rounding ten times as much.
  const std::vector<BudgetItem> items{{{25, 0.4}, {50, 0.1}, {100, 0.01}},
                                      {{25, 4.0}, {50, 1.0}, {100, 0.1}}};
  const auto choice = least_damage(items, 125);
  ASSERT_TRUE(choice);
  EXPECT_THAT(choice->options, ElementsAre(0, 2));
  EXPECT_EQ(choice->cost, 125);
  EXPECT_DOUBLE_EQ(choice->damage, 0.5);
}

TEST(Budget, TakesAnOptionThatNoFractionalChoiceWould) {
  // By damage saved for each byte the first item's step comes first, but then nothing else fits:
  // the second item's alone saves more.
  const std::vector<BudgetItem> items{{{0, 10}, {6, 0}}, {{0, 15}, {10, 0}}};
  EXPECT_THAT(least_damage(items, 10)->options, ElementsAre(0, 1));
  EXPECT_THAT(least_damage(items, 9)->options, ElementsAre(1, 0));
  EXPECT_THAT(least_damage(items, 16)->options, ElementsAre(1, 1));
}

TEST(Budget, SaysWhenABudgetIsTooSmallAndWhatWouldDo) {
  const std::vector<BudgetItem> items{{{30, 1}, {20, 2}}, {{5, 0.5}, {5, 0.25}, {9, 0}}};
  EXPECT_FALSE(least_damage(items, 24));
  const BudgetChoice smallest = cheapest(items);
  EXPECT_EQ(smallest.cost, 25);
  EXPECT_THAT(smallest.options, ElementsAre(1, 1));
  EXPECT_THAT(least_damage(items, smallest.cost)->options, ElementsAre(1, 1));
}

TEST(Budget, FindsTheCheapestChoiceThatDoesNoMoreDamageThanAllowed) {
  const std::vector<BudgetItem> items{{{8, 0}, {4, 0.25}, {2, 1}}, {{8, 0}, {4, 0.5}, {2, 2}}};
  EXPECT_THAT(least_cost(items, 0.75)->options, ElementsAre(1, 1));
  EXPECT_THAT(least_cost(items, 0.74)->options, ElementsAre(1, 0));  // as dear as {0, 1}
  EXPECT_THAT(least_cost(items, 0)->options, ElementsAre(0, 0));
  EXPECT_FALSE(least_cost(items, -0.1));
}

TEST(Budget, TakesWhatHelpsAndCostsNothingMore) {
  // Measured damages are noisy: some options make a model better.
  const std::vector<BudgetItem> items{{{10, 0}, {5, -0.5}}, {{10, 0}, {10, 1}, {4, 0.25}}};
  EXPECT_THAT(least_damage(items, 1000)->options, ElementsAre(1, 0));
  EXPECT_THAT(least_cost(items, -0.25)->options, ElementsAre(1, 2));
}

TEST(Budget, HasNothingToDecideWithoutItems) {
  EXPECT_TRUE(least_damage({}, 0)->options.empty());
  EXPECT_FALSE(least_damage({}, -1));
  EXPECT_EQ(cheapest({}).cost, 0);
}

// Every choice there is, one after another.
template <typename Visit>
void each_choice(const std::vector<BudgetItem>& items, Visit visit) {
  std::vector<std::size_t> options(items.size());
  for (;;) {
    std::int64_t cost = 0;
    double damage = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      cost += items[i][options[i]].cost;
      damage += items[i][options[i]].damage;
    }
    visit(cost, damage);
    std::size_t i = 0;
    while (i < items.size() && ++options[i] == items[i].size()) options[i++] = 0;
    if (i == items.size()) return;
  }
}

// Instances of several kinds, whose damages are multiples of 2^-10: their sums are exact, so that
// results can be compared for equality.
std::vector<BudgetItem> random_items(std::mt19937& random, int kind) {
  const auto below = [&](std::uint32_t limit) { return static_cast<int>(random() % limit); };
  std::vector<BudgetItem> items(1 + random() % 6);
  for (BudgetItem& item : items) {
    const int size = 1 + below(5), base = 1 + below(40);
    for (int i = 0; i < size; ++i) {
      const int cost = kind == 0 ? below(100) : base * (1 + below(8));
      const int damage = kind == 0   ? below(1000) - 100        // nothing to do with the cost
                         : kind == 1 ? 9000 / cost + below(20)  // less the more is spent
                         : kind == 2 ? 1000 - cost              // the same for each byte
                                     : 1000 >> below(8);        // many equal ones
      item.push_back({cost, std::ldexp(damage, -10)});
    }
  }
  return items;
}

TEST(Budget, IsAsGoodAsTryingEveryChoice) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 4000; ++trial) {
    SCOPED_TRACE(trial);
    const std::vector<BudgetItem> items = random_items(random, trial % 4);
    std::int64_t lowest = 0, highest = 0;
    for (const BudgetItem& item : items)
      for (const BudgetOption& option : item) highest += option.cost;
    lowest = cheapest(items).cost;
    const std::int64_t budget =
        lowest - 2 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(highest + 4));
    const double bound = std::ldexp(static_cast<double>(random() % 4000), -10);
    std::optional<std::pair<double, std::int64_t>> gentlest;
    std::optional<std::pair<std::int64_t, double>> thriftiest;
    each_choice(items, [&](std::int64_t cost, double damage) {
      if (cost <= budget)
        gentlest = std::min(gentlest.value_or(std::pair(damage, cost)), {damage, cost});
      if (damage <= bound)
        thriftiest = std::min(thriftiest.value_or(std::pair(cost, damage)), {cost, damage});
    });
    const auto within_budget = least_damage(items, budget);
    ASSERT_EQ(within_budget.has_value(), gentlest.has_value());
    if (gentlest) {
      EXPECT_EQ(std::pair(within_budget->damage, within_budget->cost), *gentlest);
    }
    const auto within_bound = least_cost(items, bound);
    ASSERT_EQ(within_bound.has_value(), thriftiest.has_value());
    if (thriftiest) {
      EXPECT_EQ(std::pair(within_bound->cost, within_bound->damage), *thriftiest);
    }
  }
}

// The layers of a large model at 1 to 30 bits: sizes and sensitivities over several orders of
// magnitude, damages that fall by about four for each bit.
std::vector<BudgetItem> large_model(std::uint32_t seed, int num_items, int num_options) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> size(12, 1.5), sensitivity(-4, 2), noise(0, 0.1);
  std::vector<BudgetItem> items;
  for (int i = 0; i < num_items; ++i) {
    const auto elements = static_cast<std::int64_t>(size(random));
    const double scale = sensitivity(random);
    BudgetItem item;
    for (int bits = 1; bits <= num_options; ++bits)
      item.push_back({elements * bits / 8 + 64, scale * std::pow(4.0, -bits) * noise(random)});
    items.push_back(std::move(item));
  }
  return items;
}

// Against dynamic programming over every budget, for models too large to try every choice.
TEST(Budget, IsAsGoodAsDynamicProgrammingOnManyItems) {
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    std::mt19937 random(seed);
    std::vector<BudgetItem> items(40);
    for (BudgetItem& item : items)
      for (int option = 0; option < 8; ++option)
        item.push_back({static_cast<std::int64_t>(random() % 50),
                        std::ldexp(static_cast<double>(random() % 4096), -10)});
    constexpr std::size_t kBudget = 400;
    std::vector<double> best(kBudget + 1, 0.0);
    for (const BudgetItem& item : items) {
      std::vector<double> next(kBudget + 1, INFINITY);
      for (const BudgetOption& option : item)
        for (auto spent = static_cast<std::size_t>(option.cost); spent <= kBudget; ++spent)
          next[spent] = std::min(
              next[spent], best[spent - static_cast<std::size_t>(option.cost)] + option.damage);
      best = next;
    }
    for (const std::size_t budget : {std::size_t{60}, std::size_t{200}, kBudget}) {
      const auto choice = least_damage(items, static_cast<std::int64_t>(budget));
      ASSERT_EQ(choice.has_value(), std::isfinite(best[budget]));
      if (choice) {
        EXPECT_EQ(choice->damage, best[budget]) << budget;
      }
    }
  }
}

TEST(Budget, SolvesALargeModelBothWays) {
  const std::vector<BudgetItem> items = large_model(7, 200, 30);
  const std::int64_t smallest = cheapest(items).cost;
  for (const double factor : {1.01, 1.5, 3.0, 4.5, 8.0}) {
    const auto budget = static_cast<std::int64_t>(static_cast<double>(smallest) * factor);
    const auto gentlest = least_damage(items, budget);
    ASSERT_TRUE(gentlest);
    EXPECT_LE(gentlest->cost, budget);
    // The other way round: nothing cheaper does so little damage, up to the last bits of the sum.
    const auto back = least_cost(items, gentlest->damage * (1 + 1e-12));
    ASSERT_TRUE(back);
    EXPECT_LE(back->cost, gentlest->cost);
    EXPECT_LE(least_damage(items, back->cost)->damage, gentlest->damage * (1 + 1e-12));
  }
  EXPECT_EQ(least_damage(items, 2 * smallest)->options, least_damage(items, 2 * smallest)->options);
}

}  // namespace
}  // namespace lathe::compress
