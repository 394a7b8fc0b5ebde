#include "lathe/study/samplers/tpe_sampler.h"

#include <algorithm>
#include <numeric>

#include "lathe/core/registry.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

TpeSampler::TpeSampler(TpeOptions options, std::uint64_t seed)
    : model_(std::move(options)), startup_(seed), random_(seed) {}

std::vector<std::vector<TpeAxis>> TpeSampler::joint_spaces(const History& history) const {
  const Observations& observations = model_.observations();
  const TpeOptions& options = model_.options();
  if (!options.multivariate.value_or(history.directions().size() == 1)) return {};
  std::vector<std::vector<std::size_t>> groups = observations.groups();
  if (!options.group) groups = {observations.shared_columns()};

  std::vector<std::vector<TpeAxis>> spaces;
  for (const auto& group : groups) {
    std::vector<TpeAxis> axes;
    for (const std::size_t id : group) {
      const Observations::Column& column = observations.columns()[id];
      if (!is_single(*column.distribution)) axes.push_back({column.name, column.distribution});
    }
    if (options.group || options.is_space_sorted)
      std::sort(axes.begin(), axes.end(),
                [](const TpeAxis& a, const TpeAxis& b) { return a.name < b.name; });
    // What stands alone and is not in every trial is sampled when it is asked for: half of a space
    // with conditions is not.
    const bool can_wait =
        !options.is_optuna && axes.size() == 1 &&
        observations.columns()[group.front()].num_present < observations.num_finished();
    if (!axes.empty() && !can_wait) spaces.push_back(std::move(axes));
  }
  return spaces;
}

Assignment TpeSampler::sample(const Proposal& proposal, const Assignment& so_far,
                              const std::vector<TpeAxis>& axes, bool is_joint) {
  const TpeDensities densities = model_.densities(axes, is_joint);
  const bool is_optuna = model_.options().is_optuna;
  KeyedRandom keyed(proposal, "tpe:" + axes.front().name);
  UniformSource& random = is_optuna ? static_cast<UniformSource&>(random_) : keyed;
  const Points points = densities.good.sample(random, model_.options().candidates);
  std::vector<double> scores = densities.scores(points);
  if (is_optuna) densities.break_ties_in_order(points, scores);

  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  const auto assignment = [&](std::size_t point) {
    Assignment result;
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      result.push_back({axes[axis].name, axes[axis].distribution, points[axis][point]});
    return result;
  };
  if (!proposal.is_allowed || is_optuna) return assignment(order.front());
  for (const std::size_t point : order) {
    Assignment known = so_far;
    const Assignment chosen = assignment(point);
    known.insert(known.end(), chosen.begin(), chosen.end());
    if (proposal.is_allowed(known)) return chosen;
  }
  return assignment(order.front());
}

Assignment TpeSampler::propose(const History& history, const Proposal& proposal) {
  model_.update(history, proposal.number);
  if (model_.is_starting()) return {};
  Assignment result;
  for (const std::vector<TpeAxis>& axes : joint_spaces(history)) {
    const bool is_joint = model_.options().is_optuna || axes.size() > 1;
    const Assignment chosen = sample(proposal, result, axes, is_joint);
    result.insert(result.end(), chosen.begin(), chosen.end());
  }
  return result;
}

double TpeSampler::suggest(const History& history, const Proposal& proposal,
                           const Assignment& so_far, std::string_view name,
                           const Distribution& distribution) {
  model_.update(history, proposal.number);
  if (model_.is_starting()) {
    if (model_.options().is_optuna) return startup_.draw(distribution);
    KeyedRandom random(proposal, name);
    return uniform_value(distribution, random);
  }
  const std::vector<TpeAxis> axes = {
      {std::string(name), std::make_shared<const Distribution>(distribution)}};
  // Optuna's multivariate sampler keeps its bandwidth for what it has to sample alone.
  const bool is_joint = model_.options().is_optuna &&
                        model_.options().multivariate.value_or(history.directions().size() == 1);
  return sample(proposal, so_far, axes, is_joint).front().value;
}

namespace {

const Register tpe_sampler{SamplerKind{
    .name = "tpe",
    .summary = "draw where good trials are rather than others (tree-structured Parzen estimator)",
    .options = tpe_option_list(),
    .make = [](const Options& options, std::uint64_t seed,
               const Space* /*space*/) -> std::unique_ptr<Sampler> {
      return std::make_unique<TpeSampler>(read_tpe_options(options), seed);
    },
}};

}  // namespace

}  // namespace lathe::study
