#include "lathe/study/samplers/tpe_model.h"

#include <algorithm>
#include <cmath>

namespace lathe::study {

std::vector<double> TpeDensities::scores(const Points& points) const {
  std::vector<double> result = good.log_density(points);
  const std::vector<double> others = other.log_density(points);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] -= others[i];
  return result;
}

void TpeDensities::break_ties_in_order(const Points& points, std::vector<double>& scores) const {
  const double best = *std::max_element(scores.begin(), scores.end());
  std::vector<std::size_t> tied;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > best - 1e-9) tied.push_back(i);
  const auto differs = [&](std::size_t i) {
    for (const auto& axis : points)
      if (axis[i] != axis[tied.front()]) return true;
    return false;
  };
  if (std::none_of(tied.begin(), tied.end(), differs)) return;
  Points among(points.size());
  for (std::size_t axis = 0; axis < points.size(); ++axis)
    for (const std::size_t i : tied) among[axis].push_back(points[axis][i]);
  const std::vector<double> good_densities = good.log_density_in_order(among);
  const std::vector<double> other_densities = other.log_density_in_order(among);
  // Apart from the last bits they are all the best; the others stay behind them.
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] -= 1;
  for (std::size_t i = 0; i < tied.size(); ++i)
    scores[tied[i]] = good_densities[i] - other_densities[i];
}

void TpeModel::read(const History& history, int own_number) {
  observations_.update(history, own_number, options_.constant_liar);
  num_objectives_ = history.directions().size();
}

void TpeModel::update(const History& history, int own_number) {
  read(history, own_number);
  if (split_version_ == observations_.version()) return;
  split_version_ = observations_.version();
  split_ = split(observations_, options_.num_below(observations_.num_finished(), num_objectives_),
                 options_.weigh_by_hypervolume);
}

void TpeModel::split_anew(int first_number, double gamma) {
  TpeOptions options = options_;
  options.gamma = gamma;
  std::size_t count = 0;
  for (const Observations::Row& row : observations_.rows())
    if (!row.is_running && row.number >= first_number) ++count;
  split_ = split(observations_, options.num_below(count, num_objectives_),
                 options_.weigh_by_hypervolume, first_number);
  split_version_ = 0;  // `update` makes its own again
}

TpeDensities TpeModel::densities(std::span<const TpeAxis> axes, bool is_joint) const {
  KernelOptions kernels = options_.kernels;
  if (!is_joint) {
    kernels.bandwidth = options_.independent_bandwidth;
    kernels.divides_by_width = options_.independent_divides_by_width;
  }
  std::vector<Axis> coordinates;
  std::vector<const std::vector<double>*> columns;
  for (const TpeAxis& axis : axes) {
    coordinates.push_back(make_axis(*axis.distribution));
    const auto column = observations_.find(axis.name);
    columns.push_back(column ? &observations_.columns()[*column].values : nullptr);
  }

  const auto estimate = [&](const std::vector<std::size_t>& rows,
                            const std::vector<double>& given_weights) {
    const auto has_all = [&](std::size_t row) {
      for (const auto* column : columns)
        if (column == nullptr || std::isnan((*column)[row])) return false;
      return true;
    };
    std::vector<std::size_t> kept;
    std::vector<double> weights;
    kept.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!has_all(rows[i])) continue;
      kept.push_back(rows[i]);
      if (!given_weights.empty()) weights.push_back(given_weights[i]);
    }
    if (given_weights.empty()) weights = recency_weights(kept.size(), options_.recent);
    Points points(axes.size());
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      points[axis].resize(kept.size());
      for (std::size_t i = 0; i < kept.size(); ++i) points[axis][i] = (*columns[axis])[kept[i]];
    }
    return ParzenEstimator(coordinates, points, weights, kernels);
  };
  return {estimate(split_.below, split_.below_weights), estimate(split_.above, {})};
}

}  // namespace lathe::study
