// The default: TPE that never repeats a point, helped by a Gaussian process and by starting over.
//
// Each of the three is there because the others get stuck. TPE's densities are quick and robust but
// blind to how good a good trial was; the process ranks the same candidates by what they would
// improve; and where neither has improved on the best for as long as it takes to look at all of its
// neighbours, a fresh start from random points finds another hill if there is one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/registry.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/math/random_draws.h"
#include "lathe/study/samplers/expected_loss.h"
#include "lathe/study/samplers/promising_point.h"
#include "lathe/study/samplers/tpe_candidates.h"
#include "lathe/study/space_point.h"
#include "lathe/study/unit_space.h"

namespace lathe::study {

namespace {

// How many of TPE's candidates the process chooses from.
constexpr std::size_t kProcessCandidates = 120;
// In a space with conditions, how many neighbours of the best trials beside those.
constexpr std::size_t kProcessNeighbors = 100;
// Neighbours of so many of the best trials are among the candidates.
constexpr std::size_t kElites = 4;
// A start is given up after so many trials without a better one, more where there are more
// neighbours to look at.
constexpr int kPatience = 40;
constexpr double kPatiencePerNeighbor = 5.0 / 3;
// How far a float that was tried is moved, as a share of its range, and how often at most.
constexpr double kNudge = 0.02;
constexpr int kNudges = 20;
// Spaces of up to so many points are searched for what is left when drawing finds none.
constexpr std::int64_t kMaxWalk = 20000;

// The first point that is wanted; nothing when there are too many to look at.
std::optional<Assignment> first_wanted(const Space& space,
                                       const std::function<bool(const Assignment&)>& is_wanted) {
  if (!num_points(space, kMaxWalk)) return {};
  std::optional<Assignment> found;
  visit_points(space, [&](const Assignment& point) {
    if (is_wanted(point)) found = point;
    return found.has_value();
  });
  return found;
}

class AutoSampler final : public Sampler {
 public:
  AutoSampler(TpeOptions options, const Space* space) : model_(std::move(options)) {
    if (space != nullptr) num_points_ = num_points(*space, kMaxWalk);
  }

  Assignment propose(const History& history, const Proposal& proposal) override {
    model_.read(history, proposal.number);
    seen_.update(history);
    const Space space = proposal.space != nullptr ? *proposal.space : shared_space();
    if (space.empty()) return {};
    const auto is_wanted = [&](const Assignment& point) {
      return !seen_.contains(point) && (!proposal.is_allowed || proposal.is_allowed(point));
    };
    const bool has_one_objective = history.directions().size() == 1;
    const int first = has_one_objective ? first_of_this_start(space) : 0;
    KeyedRandom random(proposal, "auto");
    // The share of trials that count as good varies from trial to trial, log-evenly from a third to
    // three times the one that was asked for: small shares dig, large ones roam.
    const double gamma = model_.options().gamma * 0.3 * std::pow(10, random.next());
    model_.split_anew(first, std::min(gamma, 0.5));

    if (num_finished_since(first) >= model_.options().startup) {
      const bool asks_process = has_one_objective && proposal.number % 2 == 1;
      TpeCandidates candidates(model_, space, proposal, kElites);
      std::vector<Assignment> best =
          candidates.best(asks_process ? kProcessCandidates : 1, is_wanted);
      if (asks_process) add_neighbors(history, space, is_wanted, random, best);
      if (!best.empty())
        return with_fresh_floats(best[asks_process ? most_promising(best, space, model_) : 0],
                                 proposal, random);
    }
    Assignment point;
    for (int i = 0; i < 100; ++i) {
      point = complete_point(space, {}, random);
      if (is_wanted(point)) return point;
    }
    return first_wanted(space, is_wanted).value_or(point);
  }

  double suggest(const History& history, const Proposal& proposal, const Assignment& so_far,
                 std::string_view name, const Distribution& distribution) override {
    model_.update(history, proposal.number);
    KeyedRandom random(proposal, name);
    if (model_.is_starting()) return uniform_value(distribution, random);
    const Space space = {{std::string(name), std::make_shared<const Distribution>(distribution)}};
    TpeCandidates candidates(model_, space, proposal, 0);
    const auto best = candidates.best(1, [&](const Assignment& chosen) {
      if (!proposal.is_allowed) return true;
      Assignment known = so_far;
      known.push_back(chosen.front());
      return proposal.is_allowed(known);
    });
    return best.empty() ? uniform_value(distribution, random) : best.front().front().value;
  }

  bool is_exhausted(const History& history) override {
    if (!num_points_) return false;
    seen_.update(history);
    return static_cast<std::int64_t>(seen_.size()) >= *num_points_;
  }

 private:
  // What every trial so far had, where no space is declared.
  Space shared_space() const {
    Space space;
    for (const std::size_t id : model_.observations().shared_columns()) {
      const Observations::Column& column = model_.observations().columns()[id];
      if (!is_single(*column.distribution)) space.push_back({column.name, column.distribution});
    }
    // By name, since which trial was read first is another matter in another process.
    std::sort(space.begin(), space.end(),
              [](const SpaceParameter& a, const SpaceParameter& b) { return a.name < b.name; });
    return space;
  }

  // Adds the points one change away from the best trials. Where parameters have conditions, TPE's
  // candidates do not hold them: it puts each condition's best choices together instead.
  void add_neighbors(const History& history, const Space& space,
                     const std::function<bool(const Assignment&)>& is_wanted, UniformSource& random,
                     std::vector<Assignment>& points) const {
    if (std::none_of(space.begin(), space.end(),
                     [](const SpaceParameter& each) { return !each.parent.empty(); }))
      return;
    // One change: which trial, which of its parameters, to which value.
    struct Change {
      const Assignment* elite;
      std::size_t parameter;
      double value;
    };
    std::vector<Change> changes;
    for (const std::size_t row : best_rows(model_, kElites)) {
      const int number = model_.observations().rows()[row].number;
      const Assignment& elite = history.trials()[static_cast<std::size_t>(number)].parameters;
      for (std::size_t i = 0; i < elite.size(); ++i)
        for (const double value : neighbor_values(*elite[i].distribution, elite[i].value))
          changes.push_back({&elite, i, value});
    }
    // Of too many, some at random.
    for (std::size_t i = 0; i < std::min(changes.size(), kProcessNeighbors); ++i) {
      const auto left = static_cast<int>(changes.size() - i);
      std::swap(changes[i], changes[i + static_cast<std::size_t>(draw_below(random, left))]);
      Assignment changed = *changes[i].elite;
      changed[changes[i].parameter].value = changes[i].value;
      Assignment point = complete_point(space, changed, random);
      if (is_wanted(point)) points.push_back(std::move(point));
    }
  }

  // The point with each float that some trial had already moved a little. Neighbours of good trials
  // keep what they do not change, and the same number again would tell less than one beside it.
  Assignment with_fresh_floats(Assignment point, const Proposal& proposal, UniformSource& random) {
    for (std::size_t i = 0; i < point.size(); ++i) {
      const Distribution& distribution = *point[i].distribution;
      const auto range = numeric_range(distribution);
      const auto column = model_.observations().find(point[i].name);
      if (!range || range->step || is_single(distribution) || !column) continue;
      const std::vector<double>& known = model_.observations().columns()[*column].values;
      for (int attempt = 0; attempt < kNudges; ++attempt) {
        if (std::ranges::find(known, point[i].value) == known.end()) break;
        const double moved =
            to_unit(distribution, point[i].value) + kNudge * (2 * random.next() - 1);
        Assignment other = point;
        // At the end of a range back into it.
        other[i].value = from_unit(distribution, moved < 0   ? -moved
                                                 : moved > 1 ? 2 - moved
                                                             : moved);
        if (!proposal.is_allowed || proposal.is_allowed(other)) point = std::move(other);
      }
    }
    return point;
  }

  std::size_t num_finished_since(int first) const {
    const auto& rows = model_.observations().rows();
    return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
      return !row.is_running && row.number >= first;
    }));
  }

  // The number of the trial with which the search last started over.
  int first_of_this_start(const Space& space) const {
    double num_neighbors = 0;
    for (const SpaceParameter& parameter : space) {
      const auto count = num_values(*parameter.distribution);
      if (!count) return 0;  // numbers can always be improved a little
      const double others = static_cast<double>(*count - 1);
      num_neighbors += num_choices(*parameter.distribution) > 0 ? others : std::min(2.0, others);
    }
    const int patience =
        std::max(kPatience, static_cast<int>(kPatiencePerNeighbor * num_neighbors));
    const int startup = static_cast<int>(model_.options().startup);
    const Observations& observations = model_.observations();
    int first = 0;
    int last_better = startup;
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t index : observations.by_number()) {
      const Observations::Row& row = observations.rows()[index];
      if (row.is_running || row.number < first) continue;
      const double loss = comparable_loss(observations, index);
      if (loss < best) {
        best = loss;
        last_better = std::max(row.number + 1, first + startup);
      }
      if (row.number + 1 - last_better < patience) continue;
      first = row.number + 1;
      last_better = first + startup;
      best = std::numeric_limits<double>::infinity();
    }
    return first;
  }

  TpeModel model_;
  SeenPoints seen_;
  std::optional<std::int64_t> num_points_;  // of the declared space, if it has few
};

const Register auto_sampler{SamplerKind{
    .name = "auto",
    .summary = "TPE that never repeats a point, with a Gaussian process and fresh starts",
    .options = tpe_option_list(),
    .make = [](const Options& options, std::uint64_t /*seed*/,
               const Space* space) -> std::unique_ptr<Sampler> {
      return std::make_unique<AutoSampler>(read_tpe_options(options), space);
    },
}};

}  // namespace

}  // namespace lathe::study
