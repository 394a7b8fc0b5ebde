#include "lathe/hardware/mapping/solve_folding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/core/error.h"
#include "lathe/hardware/lut_model.h"

namespace lathe::hardware {
namespace {

using Options = std::vector<FoldingOption>;

// Layers as linears are: cycles fall with the lanes, multipliers grow with them.
std::vector<Options> drawn_layers(std::mt19937_64& random, int count) {
  std::vector<Options> layers(static_cast<std::size_t>(count));
  for (Options& options : layers) {
    const auto in = static_cast<std::int64_t>(2 + random() % 14);
    const auto out = static_cast<std::int64_t>(2 + random() % 14);
    for (const int pi : lane_choices(in))
      for (const int po : lane_choices(out))
        options.push_back({.lanes = {.in = pi, .out = po},
                           .cycles = ((in + pi - 1) / pi) * ((out + po - 1) / po),
                           .resources = {.dsp = pi * po,
                                         .bram18 = (pi * po * 8 + 35) / 36,
                                         .lut = 40 * pi * po + 30 * po +
                                                static_cast<std::int64_t>(random() % 50)}});
  }
  return layers;
}

struct Outcome {
  std::int64_t cycles = 0;
  Resources resources = {};
};

Outcome outcome(const std::vector<Options>& layers, const std::vector<std::size_t>& choice) {
  Outcome result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    result.cycles = std::max(result.cycles, layers[i][choice[i]].cycles);
    result.resources += layers[i][choice[i]].resources;
  }
  return result;
}

// Every choice there is.
template <typename Visit>
void for_every_choice(const std::vector<Options>& layers, const Visit& visit) {
  std::vector<std::size_t> choice(layers.size());
  for (;;) {
    visit(choice);
    std::size_t i = 0;
    while (i < layers.size() && ++choice[i] == layers[i].size()) choice[i++] = 0;
    if (i == layers.size()) return;
  }
}

TEST(SolveFolding, FindsTheFewestCyclesThatABudgetOfMultipliersAllows) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 10; ++round) {
    const std::vector<Options> layers = drawn_layers(random, 3);
    for (const std::int64_t dsp : {4, 20, 90}) {
      const Outcome chosen = outcome(layers, choose_folding(layers, {.dsp = dsp}));
      EXPECT_LE(chosen.resources.dsp, dsp);
      std::int64_t best = INT64_MAX;
      for_every_choice(layers, [&](const std::vector<std::size_t>& choice) {
        const Outcome other = outcome(layers, choice);
        if (other.resources.dsp <= dsp) best = std::min(best, other.cycles);
      });
      EXPECT_EQ(chosen.cycles, best) << "round " << round << ", " << dsp << " DSP";
    }
  }
}

TEST(SolveFolding, FindsTheLeastAreaForATargetOfCycles) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 10; ++round) {
    const std::vector<Options> layers = drawn_layers(random, 3);
    for (const std::int64_t cycles : {3, 10, 60}) {
      const Outcome chosen = outcome(layers, choose_folding(layers, {.cycles = cycles}));
      EXPECT_LE(chosen.cycles, cycles);
      double best = 1e9;
      for_every_choice(layers, [&](const std::vector<std::size_t>& choice) {
        const Outcome other = outcome(layers, choice);
        if (other.cycles <= cycles) best = std::min(best, area(other.resources));
      });
      EXPECT_NEAR(area(chosen.resources), best, 1e-9);
    }
  }
}

TEST(SolveFolding, CountsConvertersBetweenLayers) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 10; ++round) {
    const std::vector<Options> layers = drawn_layers(random, 3);
    const std::vector<FoldingEdge> edges = {{.from = 0, .to = 1, .size = 12},
                                            {.from = 1, .to = 2, .size = 10}};
    const auto whole_area = [&](const std::vector<std::size_t>& choice) {
      Resources sum = outcome(layers, choice).resources;
      for (const FoldingEdge& edge : edges)
        sum.lut +=
            std::lround(converter_luts(edge.size, layers[edge.from][choice[edge.from]].lanes.out,
                                       layers[edge.to][choice[edge.to]].lanes.in, edge.width));
      return area(sum);
    };
    for (const std::int64_t cycles : {3, 10, 60}) {
      double best = 1e9;
      for_every_choice(layers, [&](const std::vector<std::size_t>& choice) {
        if (outcome(layers, choice).cycles <= cycles) best = std::min(best, whole_area(choice));
      });
      EXPECT_NEAR(whole_area(choose_folding(layers, {.cycles = cycles}, edges)), best, 1e-9);
    }
  }
}

TEST(SolveFolding, KeepsSeveralBudgetsAtOnce) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 10; ++round) {
    const std::vector<Options> layers = drawn_layers(random, 3);
    const FoldingGoal goal{.dsp = 60, .bram18 = 12, .lut = 2500};
    const Outcome chosen = outcome(layers, choose_folding(layers, goal));
    EXPECT_FALSE(goal.excess(chosen.resources));
    std::int64_t best = INT64_MAX;
    for_every_choice(layers, [&](const std::vector<std::size_t>& choice) {
      const Outcome other = outcome(layers, choice);
      if (!goal.excess(other.resources)) best = std::min(best, other.cycles);
    });
    EXPECT_EQ(chosen.cycles, best) << "round " << round;
  }
}

TEST(SolveFolding, SaysWhatTheLeastWouldBe) {
  const std::vector<Options> layers = {{{.lanes = {1, 1}, .cycles = 8, .resources = {.dsp = 3}},
                                        {.lanes = {2, 1}, .cycles = 4, .resources = {.dsp = 6}}}};
  const auto problem = [&](const FoldingGoal& goal) {
    try {
      choose_folding(layers, goal);
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string("none");
  };
  EXPECT_EQ(problem({.dsp = 2}),
            "no lanes fit the budget: the layers take at least 3 DSP, 0 block RAMs of 18 kbit, 0 "
            "LUTs");
  EXPECT_EQ(problem({.cycles = 3}), "cycles 3: an example takes at least 4, whatever the lanes");
}

TEST(LaneChoices, LeaveOutLanesThatSaveNoBeat) {
  EXPECT_EQ(lane_choices(7), (std::vector<int>{1, 2, 3, 4, 7}));
  EXPECT_EQ(lane_choices(96), (std::vector<int>{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96}));
}

TEST(Parallelism, IsReadAsItIsWritten) {
  Parallelism parallelism;
  add_parallelism(parallelism, "layers.0=4x8");
  add_parallelism(parallelism, "a=b=2x1");
  EXPECT_EQ(to_text(parallelism), "a=b=2x1,layers.0=4x8");
  EXPECT_THROW(add_parallelism(parallelism, "layers.0=1x1"), UserError);
  EXPECT_THROW(add_parallelism(parallelism, "layers.1=4"), UserError);
  EXPECT_THROW(add_parallelism(parallelism, "layers.1=0x4"), UserError);
}

}  // namespace
}  // namespace lathe::hardware
