// Hill climbing with restarts: tries the neighbours of the best point of the climb, in random
// order, moves as soon as one is better, and starts elsewhere when all of them were tried. Never
// tries a point twice; in a countable space it stops when all were tried.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "lathe/core/registry.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/math/pareto.h"
#include "lathe/study/math/random_draws.h"
#include "lathe/study/samplers/known_space.h"
#include "lathe/study/samplers/sampler.h"
#include "lathe/study/space_point.h"
#include "lathe/study/uniform_value.h"
#include "lathe/study/unit_space.h"

namespace lathe::study {

namespace {

constexpr const char* kClimb = "lathe:local:climb";
// Spaces up to this size are listed when random draws hit tried points only.
constexpr std::int64_t kListable = 100000;
constexpr int kLocalRetries = 200;
// Continuous ranges are walked in steps of a quarter down to about a thousandth.
constexpr int kFinest = 10;

// The values one move away: any other choice; for numbers, one step and twice as many each time up
// to half the range.
std::vector<double> neighbours(const Distribution& distribution, double value) {
  std::vector<double> result;
  const auto add = [&](double other) {
    if (other == value || std::find(result.begin(), result.end(), other) != result.end()) return;
    if (contains(distribution, other)) result.push_back(other);
  };
  if (const std::size_t count = num_choices(distribution); count > 0) {
    for (std::size_t i = 0; i < count; ++i) add(static_cast<double>(i));
    return result;
  }
  const NumericRange range = *numeric_range(distribution);
  if (!range.step) {
    const double unit = to_unit(distribution, value);
    for (int level = 2; level <= kFinest; ++level)
      for (const double sign : {-1.0, 1.0})
        if (const double place = unit + sign * std::ldexp(1.0, -level); place >= 0 && place <= 1)
          add(from_unit(distribution, place));
    return result;
  }
  const double count = std::round((range.last - range.first) / *range.step);
  const double index = std::round((value - range.first) / *range.step);
  for (double jump = 1; jump <= std::max(1.0, count / 2); jump *= 2)
    for (const double sign : {-1.0, 1.0})
      if (const double place = index + sign * jump; place >= 0 && place <= count)
        add(std::min(range.first + place * *range.step, range.last));
  return result;
}

class LocalSampler final : public Sampler {
 public:
  explicit LocalSampler(const Space* space) {
    if (space != nullptr) num_points_ = num_points(*space, kListable);
  }

  Assignment propose(const History& history, const Proposal& proposal) override {
    if (proposal.space == nullptr) known_.update(history);
    seen_.update(history);
    const Space space = full_space(proposal, known_);
    KeyedRandom random(proposal, "local");
    const Climb climb = latest_climb(history);
    int number = std::max(climb.number, 0);
    std::optional<Assignment> point;
    if (climb.summit) point = untried_neighbour(space, climb.summit->parameters, random);
    if (!point) {
      // Other workers may still be busy with the climb's first points: leave it only when it has
      // come to its end.
      if (climb.summit) ++number;
      point = untried_point(space, random);
    }
    if (proposal.system_attributes != nullptr)
      (*proposal.system_attributes)[kClimb] = fmt::format("{}", number);
    return *point;
  }

  double suggest(const History& /*history*/, const Proposal& proposal, const Assignment& /*so_far*/,
                 std::string_view name, const Distribution& distribution) override {
    KeyedRandom random(proposal, name);
    return uniform_value(distribution, random);
  }

  bool is_exhausted(const History& history) override {
    if (!num_points_) return false;
    seen_.update(history);
    return static_cast<std::int64_t>(seen_.size()) >= *num_points_;
  }

 private:
  struct Climb {
    int number = -1;
    const TrialRecord* summit = nullptr;
  };

  // The best complete trial of the last climb; trials of other samplers belong to climb 0.
  static Climb latest_climb(const History& history) {
    Climb climb;
    for (const TrialRecord& trial : history.trials()) {
      int number = 0;
      const auto found = trial.system_attributes.find(kClimb);
      if (found != trial.system_attributes.end())
        std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
      if (number < climb.number) continue;
      if (number > climb.number) climb = {number, nullptr};
      if (trial.state != TrialState::Complete) continue;
      if (trial.values.size() != history.directions().size()) continue;
      if (climb.summit == nullptr || is_better(trial, *climb.summit, history.directions()))
        climb.summit = &trial;
    }
    return climb;
  }

  // Of several objectives only a point that dominates is a step up.
  static bool is_better(const TrialRecord& a, const TrialRecord& b,
                        const std::vector<Direction>& directions) {
    const double violation_a = violation(a);
    const double violation_b = violation(b);
    if (violation_a != violation_b) return violation_a < violation_b;
    return dominates(to_losses(a.values, directions), to_losses(b.values, directions));
  }

  std::optional<Assignment> untried_neighbour(const Space& space, const Assignment& summit,
                                              UniformSource& random) const {
    std::vector<std::pair<int, double>> moves;
    for (int i = 0; i < static_cast<int>(summit.size()); ++i)
      for (const double value : neighbours(*summit[i].distribution, summit[i].value))
        moves.push_back({i, value});
    for (const int index : draw_order(random, static_cast<int>(moves.size()))) {
      Assignment wanted = summit;
      wanted[moves[index].first].value = moves[index].second;
      Assignment point = complete_point(space, wanted, random);
      if (!seen_.contains(point)) return point;
    }
    return {};
  }

  Assignment untried_point(const Space& space, UniformSource& random) {
    Assignment point;
    for (int attempt = 0; attempt < kLocalRetries; ++attempt) {
      point = complete_point(space, {}, random);
      if (!seen_.contains(point)) return point;
    }
    // Nearly everything was tried: list what was not.
    if (!num_points(space, kListable)) return point;
    std::vector<Assignment> untried;
    visit_points(space, [&](const Assignment& each) {
      if (!seen_.contains(each)) untried.push_back(each);
      return false;
    });
    if (untried.empty()) return point;
    return untried[draw_below(random, static_cast<int>(untried.size()))];
  }

  std::optional<std::int64_t> num_points_;  // of a declared, countable space
  KnownSpace known_;
  SeenPoints seen_;
};

const Register local_sampler{SamplerKind{
    .name = "local",
    .summary =
        "climb from neighbour to better neighbour, restart at the top; never repeats a point",
    .options = {},
    .make = [](const Options& /*options*/, std::uint64_t /*seed*/, const Space* space)
        -> std::unique_ptr<Sampler> { return std::make_unique<LocalSampler>(space); },
}};

}  // namespace

}  // namespace lathe::study
