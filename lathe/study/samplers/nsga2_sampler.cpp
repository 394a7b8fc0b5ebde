// NSGA-II (Deb and others, 2002): generations of `population` trials whose parents are the best of
// all earlier ones, by front and then by how alone they are in it. Points that violate constraints
// come after those that do not. Everything follows from the history, so processes may come and go.
#include <algorithm>

#include "lathe/core/registry.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/math/pareto.h"
#include "lathe/study/math/random_draws.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/report_loss.h"
#include "lathe/study/samplers/generations.h"
#include "lathe/study/samplers/known_space.h"
#include "lathe/study/samplers/sampler.h"
#include "lathe/study/samplers/variation.h"
#include "lathe/study/space_point.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

namespace {

constexpr const char* kNsga2Generation = "lathe:nsga2:generation";
// A child that was tried before is drawn again so often.
constexpr int kNsga2Retries = 20;

struct Nsga2Options {
  int population = 50;
  std::string crossover = "uniform";
  double crossover_probability = 0.9;
  double swapping = 0.5;
  std::optional<double> mutation = {};  // per parameter; nothing: one parameter on average
};

class Nsga2Sampler final : public Sampler {
 public:
  explicit Nsga2Sampler(Nsga2Options options)
      : options_(std::move(options)), generations_(kNsga2Generation) {}

  Assignment propose(const History& history, const Proposal& proposal) override {
    if (proposal.space == nullptr) known_.update(history);
    seen_.update(history);
    catch_up(history);
    if (proposal.system_attributes != nullptr)
      (*proposal.system_attributes)[kNsga2Generation] = fmt::format("{}", generation_);
    const Space space = full_space(proposal, known_);
    KeyedRandom random(proposal, "nsga2");
    Assignment child;
    for (int attempt = 0; attempt < kNsga2Retries; ++attempt) {
      child =
          parents_.empty() ? complete_point(space, {}, random) : make_child(history, space, random);
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
  struct Parent {
    int number;
    double score;  // by front and crowding, less is better
  };

  // Brings the parents up to the last generation that is full.
  void catch_up(const History& history) {
    const std::optional<int> changed = generations_.update(history);
    // Trials of other samplers count as the first generation.
    const bool has_new_strangers = num_strangers_ != generations_.strangers().size();
    num_strangers_ = generations_.strangers().size();
    if ((changed && *changed < generation_) || (has_new_strangers && generation_ > 0)) {
      generation_ = 0;
      parents_.clear();
    }
    while (true) {
      std::vector<int> candidates = generations_.members(generation_);
      if (generation_ == 0)
        candidates.insert(candidates.end(), generations_.strangers().begin(),
                          generations_.strangers().end());
      if (static_cast<int>(candidates.size()) < options_.population) return;
      for (const Parent& parent : parents_) candidates.push_back(parent.number);
      std::sort(candidates.begin(), candidates.end());
      parents_ = best_of(history, candidates);
      ++generation_;
    }
  }

  std::vector<Parent> best_of(const History& history, const std::vector<int>& candidates) const {
    std::vector<Losses> losses;
    std::vector<double> violations;
    for (const int number : candidates) {
      losses.push_back(to_losses(history.trials()[number].values, history.directions()));
      violations.push_back(violation(history.trials()[number]));
    }
    const std::vector<int> ranks = non_dominated_ranks(losses, violations);
    std::vector<Parent> parents;
    for (int rank = 0; static_cast<int>(parents.size()) < options_.population; ++rank) {
      std::vector<Losses> front;
      std::vector<int> members;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i] != rank) continue;
        front.push_back(losses[i]);
        members.push_back(candidates[i]);
      }
      const std::vector<double> distances = crowding_distances(front);
      std::vector<Parent> ordered;
      for (std::size_t i = 0; i < members.size(); ++i)
        ordered.push_back({members[i], rank + 0.5 / (1 + distances[i])});
      std::stable_sort(ordered.begin(), ordered.end(),
                       [](const Parent& a, const Parent& b) { return a.score < b.score; });
      const std::size_t room = options_.population - parents.size();
      if (ordered.size() > room) ordered.resize(room);
      parents.insert(parents.end(), ordered.begin(), ordered.end());
    }
    return parents;
  }

  // The better of two.
  const TrialRecord& draw_parent(const History& history, UniformSource& random) const {
    const auto count = static_cast<int>(parents_.size());
    const Parent& a = parents_[draw_below(random, count)];
    const Parent& b = parents_[draw_below(random, count)];
    return history.trials()[(b.score < a.score ? b : a).number];
  }

  Assignment make_child(const History& history, const Space& space, UniformSource& random) const {
    const TrialRecord& first = draw_parent(history, random);
    const TrialRecord& second = draw_parent(history, random);
    const bool is_crossed = random.next() < options_.crossover_probability;
    Assignment child;
    for (const SpaceParameter& parameter : space) {
      const Distribution& distribution = *parameter.distribution;
      const Parameter* a = first.find(parameter.name);
      const Parameter* b = second.find(parameter.name);
      if (a == nullptr && b == nullptr) continue;
      double value = a != nullptr ? a->value : b->value;
      if (is_crossed && a != nullptr && b != nullptr) {
        if (options_.crossover == "sbx") {
          value = cross_numbers(distribution, a->value, b->value, 20, random);
        } else if (random.next() < options_.swapping) {
          value = b->value;
        }
      }
      child.push_back({parameter.name, parameter.distribution, value});
    }
    const double mutation =
        options_.mutation.value_or(1.0 / std::max<std::size_t>(child.size(), 1));
    for (Parameter& parameter : child) {
      if (random.next() >= mutation) continue;
      parameter.value =
          options_.crossover == "sbx"
              ? mutate_polynomially(*parameter.distribution, parameter.value, 20, random)
              : uniform_value(*parameter.distribution, random);
    }
    return complete_point(space, child, random);
  }

  Nsga2Options options_;
  KnownSpace known_;
  SeenPoints seen_;
  Generations generations_;
  // Worked out from the history.
  int generation_ = 0;
  std::vector<Parent> parents_;
  std::size_t num_strangers_ = 0;
};

std::unique_ptr<Sampler> make_nsga2(const Options& options, std::uint64_t /*seed*/,
                                    const Space* /*space*/) {
  const OptionReader reader(options);
  Nsga2Options parsed;
  parsed.population = static_cast<int>(reader.whole("population", 50, 2));
  parsed.crossover = reader.word("crossover", "uniform", {"uniform", "sbx"});
  parsed.crossover_probability = reader.number("crossover-probability", 0.9, 0, 1);
  parsed.swapping = reader.number("swapping", 0.5, 0, 1);
  if (reader.has("mutation")) parsed.mutation = reader.number("mutation", 0, 0, 1);
  return std::make_unique<Nsga2Sampler>(std::move(parsed));
}

const Register nsga2_sampler{SamplerKind{
    .name = "nsga2",
    .summary = "breed generations towards the whole Pareto front (NSGA-II)",
    .options = {{"population", "trials of a generation, at least 2 [50]"},
                {"crossover", "uniform or sbx [uniform]"},
                {"crossover-probability", "that a child has two parents, 0 to 1 [0.9]"},
                {"swapping", "chance of a parameter to come from the second, 0 to 1 [0.5]"},
                {"mutation", "chance of a parameter to be drawn anew, 0 to 1 [1 / parameters]"}},
    .make = make_nsga2,
}};

}  // namespace

}  // namespace lathe::study
