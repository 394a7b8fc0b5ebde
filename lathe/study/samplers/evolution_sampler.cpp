// Regularized evolution (Real and others, 2019): the best of a few of the latest trials is changed
// in one place. Old trials leave the population whatever they were worth, so that a lucky result
// does not rule for ever.
#include <algorithm>

#include "lathe/core/registry.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/math/random_draws.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/report_loss.h"
#include "lathe/study/samplers/known_space.h"
#include "lathe/study/samplers/sampler.h"
#include "lathe/study/samplers/variation.h"
#include "lathe/study/space_point.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

namespace {

constexpr int kEvolutionRetries = 50;

class EvolutionSampler final : public Sampler {
 public:
  EvolutionSampler(int population, int tournament)
      : population_(population), tournament_(tournament) {}

  Assignment propose(const History& history, const Proposal& proposal) override {
    if (proposal.space == nullptr) known_.update(history);
    seen_.update(history);
    const Space space = full_space(proposal, known_);
    KeyedRandom random(proposal, "evolution");
    const std::vector<int> population = latest(history);
    const bool is_young = static_cast<int>(population.size()) < population_;
    Assignment child;
    for (int attempt = 0; attempt < kEvolutionRetries; ++attempt) {
      if (is_young) {
        child = complete_point(space, {}, random);
      } else {
        child = history.trials()[winner(history, population, random)].parameters;
        // Once the neighbours are used up the child goes farther away.
        for (int change = 0; change <= attempt / 10; ++change) mutate(child, random);
        child = complete_point(space, child, random);
      }
      if (!seen_.contains(child)) break;
    }
    return child;
  }

  double suggest(const History& /*history*/, const Proposal& proposal, const Assignment& /*so_far*/,
                 std::string_view name, const Distribution& distribution) override {
    KeyedRandom random(proposal, name);
    return uniform_value(distribution, random);
  }

 private:
  // Numbers of the latest complete trials.
  std::vector<int> latest(const History& history) const {
    std::vector<int> numbers;
    for (int number = static_cast<int>(history.trials().size()) - 1;
         number >= 0 && static_cast<int>(numbers.size()) < population_; --number) {
      const TrialRecord& trial = history.trials()[number];
      if (trial.state == TrialState::Complete && trial.values.size() == history.directions().size())
        numbers.push_back(number);
    }
    return numbers;
  }

  int winner(const History& history, const std::vector<int>& population,
             UniformSource& random) const {
    std::vector<int> order = draw_order(random, static_cast<int>(population.size()));
    order.resize(std::min<std::size_t>(order.size(), tournament_));
    std::vector<Losses> losses;
    std::vector<double> violations;
    for (const int index : order) {
      const TrialRecord& trial = history.trials()[population[index]];
      losses.push_back(to_losses(trial.values, history.directions()));
      violations.push_back(violation(trial));
    }
    const std::vector<int> ranks = non_dominated_ranks(losses, violations);
    const auto best = std::min_element(ranks.begin(), ranks.end()) - ranks.begin();
    return population[order[best]];
  }

  static void mutate(Assignment& point, UniformSource& random) {
    std::vector<Parameter*> free;
    for (Parameter& parameter : point)
      if (!is_single(*parameter.distribution)) free.push_back(&parameter);
    if (free.empty()) return;
    Parameter& changed = *free[draw_below(random, static_cast<int>(free.size()))];
    changed.value = mutate_value(*changed.distribution, changed.value, random);
  }

  int population_;
  int tournament_;
  KnownSpace known_;
  SeenPoints seen_;
};

std::unique_ptr<Sampler> make_evolution(const Options& options, std::uint64_t /*seed*/,
                                        const Space* /*space*/) {
  const OptionReader reader(options);
  return std::make_unique<EvolutionSampler>(static_cast<int>(reader.whole("population", 20, 2)),
                                            static_cast<int>(reader.whole("tournament", 5, 1)));
}

const Register evolution_sampler{SamplerKind{
    .name = "evolution",
    .summary = "change the best of a few recent trials in one place (regularized evolution)",
    .options = {{"population", "recent trials to choose parents from, at least 2 [20]"},
                {"tournament", "of so many drawn ones the best is the parent, at least 1 [5]"}},
    .make = make_evolution,
}};

}  // namespace

}  // namespace lathe::study
