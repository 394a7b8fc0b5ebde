// The lanes that are chosen for whole networks, FIFOs and converters included, against every choice
// there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/hardware/testing/random_network.h"

namespace lathe::hardware {
namespace {

using namespace testing;

constexpr std::size_t kLeastChoices = 12, kMostChoices = 150;

struct Outcome {
  std::int64_t cycles = 0;
  Resources resources = {};
};

std::vector<Parallelism> every_choice(const RandomNetwork& network) {
  GraphMapper mapper(network.graph, network.state, {});
  mapper.run();
  std::vector<Parallelism> choices(1);
  for (const GraphMapper::FoldedLayer& layer : mapper.folded_layers()) {
    std::vector<Parallelism> longer;
    for (const Parallelism& choice : choices)
      for (const int in : lane_choices(layer.in))
        for (const int out : lane_choices(layer.out)) {
          if (longer.size() > kMostChoices) return longer;
          longer.push_back(choice);
          longer.back()[network.graph.name(layer.node)] = {.in = in, .out = out};
        }
    choices = std::move(longer);
  }
  return choices;
}

Outcome outcome_of(const Design& design) {
  return {.cycles = design.frame_interval, .resources = design.resources};
}

// The value at a share of a sorted list.
template <typename T>
T at_share(std::vector<T> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

TEST(FoldingTargets, AreMetAsWellAsAnyChoiceCan) {
  int num_networks = 0;
  for (std::uint64_t seed = 7000; num_networks < 10; ++seed) {
    const RandomNetwork network(seed);
    const std::vector<Parallelism> choices = every_choice(network);
    if (choices.size() < kLeastChoices || choices.size() > kMostChoices) continue;
    ++num_networks;
    SCOPED_TRACE(fmt::format("network {}, {} choices", seed, choices.size()));
    std::vector<Outcome> all;
    for (const Parallelism& choice : choices)
      all.push_back(
          outcome_of(design_hardware(network.graph, network.state, {.parallelism = choice})));
    std::vector<std::int64_t> cycles, dsp, lut;
    for (const Outcome& one : all) {
      cycles.push_back(one.cycles);
      dsp.push_back(one.resources.dsp);
      lut.push_back(one.resources.lut);
    }
    for (const double share : {0.1, 0.3, 0.6}) {
      const FoldingGoal pace{.cycles = at_share(cycles, share)};
      const Outcome least =
          outcome_of(design_hardware(network.graph, network.state, {.goal = pace}));
      EXPECT_LE(least.cycles, *pace.cycles);
      double best_area = std::numeric_limits<double>::max();
      for (const Outcome& one : all)
        if (one.cycles <= *pace.cycles) best_area = std::min(best_area, area(one.resources));
      EXPECT_LE(area(least.resources), 1.05 * best_area) << *pace.cycles << " cycles";

      for (const FoldingGoal& budget :
           {FoldingGoal{.dsp = at_share(dsp, share)}, FoldingGoal{.lut = at_share(lut, share)}}) {
        const Outcome fastest =
            outcome_of(design_hardware(network.graph, network.state, {.goal = budget}));
        EXPECT_FALSE(budget.excess(fastest.resources));
        std::int64_t best = std::numeric_limits<std::int64_t>::max();
        for (const Outcome& one : all)
          if (!budget.excess(one.resources)) best = std::min(best, one.cycles);
        EXPECT_LE(static_cast<double>(fastest.cycles), 1.05 * static_cast<double>(best))
            << (budget.dsp ? "dsp " : "lut ") << budget.dsp.value_or(budget.lut.value_or(0));
      }
    }
  }
}

}  // namespace
}  // namespace lathe::hardware
