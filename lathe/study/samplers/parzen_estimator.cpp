#include "lathe/study/samplers/parzen_estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/study/math/numpy_random.h"
#include "lathe/study/math/truncated_normal.h"
#include "lathe/study/samplers/parzen_loops.h"

namespace lathe::study {

namespace {

// Points are scored so many at a time, which keeps their match counts in the cache.
constexpr std::size_t kBlock = 512;

bool has_discrete_mass(const NumericRange& range, const KernelOptions& options) {
  return range.step && (!range.is_log || options.discrete_log);
}

// The larger of the gaps to both neighbours, for each point.
std::vector<double> neighbor_gaps(const std::vector<double>& points, const NumericRange& range,
                                  bool use_endpoints) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<double> gaps(points.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double point = points[order[rank]];
    const bool is_first = rank == 0;
    const bool is_last = rank + 1 == order.size();
    const double left = point - (is_first ? range.low : points[order[rank - 1]]);
    const double right = (is_last ? range.high : points[order[rank + 1]]) - point;
    double gap = std::max(left, right);
    if (!use_endpoints && order.size() >= 2) {
      if (is_first) gap = right;
      if (is_last) gap = left;
    }
    gaps[order[rank]] = gap;
  }
  return gaps;
}

}  // namespace

Axis make_axis(const Distribution& distribution) {
  const std::size_t count = num_choices(distribution);
  if (count > 0) return {.num_choices = count};
  return {.range = *numeric_range(distribution)};
}

std::vector<double> recency_weights(std::size_t count, std::size_t recent) {
  std::vector<double> weights(count, 1.0);
  if (count < recent || recent == 0) return weights;
  const std::size_t old = count - recent;
  const double first = 1.0 / static_cast<double>(count);
  const double step = old > 1 ? (1.0 - first) / static_cast<double>(old - 1) : 0;
  for (std::size_t i = 0; i < old; ++i) weights[i] = static_cast<double>(i) * step + first;
  if (old > 1) weights[old - 1] = 1.0;
  return weights;
}

ParzenEstimator::ParzenEstimator(std::vector<Axis> axes, const Points& observations,
                                 std::span<const double> weights, const KernelOptions& options)
    : axes_(std::move(axes)),
      options_(options),
      num_observations_(weights.size()),
      weights_(weights.begin(), weights.end()),
      codes_(axes_.size()),
      numeric_(axes_.size()) {
  weights_.push_back(options.prior_weight);
  // Without observations the prior is all there is, whatever it weighs.
  if (num_observations_ == 0) weights_.back() = 1;
  const double sum = numpy_sum(weights_);
  for (double& weight : weights_) weight /= sum;
  // A logarithm for each of thousands of kernels would be most of the cost of a categorical axis,
  // which needs only the prior's.
  const bool has_numbers = std::any_of(axes_.begin(), axes_.end(),
                                       [](const Axis& axis) { return axis.num_choices == 0; });
  if (has_numbers || options.adds_kernels_in_order)
    for (const double weight : weights_) log_weights_.push_back(std::log(weight));
  smoothing_ = options.prior_weight / static_cast<double>(num_observations_ + 1);

  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    if (axes_[axis].num_choices == 0) {
      fit_numeric(axis, observations[axis]);
      continue;
    }
    codes_[axis].reserve(num_observations_);
    for (const double value : observations[axis])
      codes_[axis].push_back(static_cast<std::uint16_t>(value));
  }
}

void ParzenEstimator::fit_numeric(std::size_t axis, const std::vector<double>& observed) {
  const NumericRange& range = axes_[axis].range;
  Numeric& kernels = numeric_[axis];
  kernels.mu.reserve(observed.size() + 1);
  for (const double value : observed) kernels.mu.push_back(range.from_internal(value));
  const double middle = 0.5 * (range.low + range.high);

  switch (options_.bandwidth) {
    case Bandwidth::Scott: {
      const double count = static_cast<double>(std::max<std::size_t>(observed.size(), 1));
      const double share = 0.2 * std::pow(count, -1.0 / static_cast<double>(axes_.size() + 4));
      kernels.sigma.assign(observed.size() + 1, share * range.width());
      kernels.mu.push_back(middle);
      break;
    }
    case Bandwidth::Neighbors:
      kernels.sigma = neighbor_gaps(kernels.mu, range, options_.endpoints);
      kernels.sigma.push_back(0);
      kernels.mu.push_back(middle);
      break;
    case Bandwidth::NeighborsWithPrior:
      kernels.mu.push_back(middle);
      kernels.sigma = neighbor_gaps(kernels.mu, range, options_.endpoints);
      break;
  }
  const double num_kernels = static_cast<double>(kernels.mu.size());
  const double least =
      options_.magic_clip ? range.width() / std::min(100.0, 1.0 + num_kernels) : 1e-12;
  for (double& sigma : kernels.sigma) sigma = std::clamp(sigma, least, range.width());
  kernels.sigma.back() = range.width();

  kernels.log_mass.resize(kernels.mu.size());
  const bool is_discrete = has_discrete_mass(range, options_);
  for (std::size_t k = 0; k < kernels.mu.size(); ++k) {
    const double sigma = kernels.sigma[k];
    kernels.log_mass[k] =
        log_normal_mass((range.low - kernels.mu[k]) / sigma, (range.high - kernels.mu[k]) / sigma);
    // For a density, everything that does not depend on the point.
    if (is_discrete) continue;
    kernels.log_mass[k] += 0.5 * std::log(2 * std::numbers::pi);
    if (options_.divides_by_width) kernels.log_mass[k] += std::log(sigma);
  }
}

double ParzenEstimator::sample_categorical(std::size_t axis, std::size_t kernel, double u,
                                           std::vector<double>& row) const {
  row.assign(axes_[axis].num_choices, smoothing_);
  if (kernel < num_observations_) row[codes_[axis][kernel]] += 1;
  const double sum = numpy_sum(row);
  double cumulative = 0;
  std::size_t choice = 0;
  for (const double weight : row) {
    cumulative += weight / sum;
    if (cumulative < u) ++choice;
  }
  return static_cast<double>(std::min(choice, row.size() - 1));
}

Points ParzenEstimator::sample(UniformSource& random, std::size_t count) const {
  std::vector<double> cumulative(weights_.size());
  std::partial_sum(weights_.begin(), weights_.end(), cumulative.begin());
  for (double& value : cumulative) value /= cumulative.back();
  std::vector<std::size_t> kernel(count);
  for (std::size_t& index : kernel) {
    const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), random.next());
    index = std::min(static_cast<std::size_t>(found - cumulative.begin()), num_observations_);
  }

  Points points(axes_.size(), std::vector<double>(count));
  std::vector<double> row;
  const auto draw = [&](std::size_t axis) {
    const NumericRange& range = axes_[axis].range;
    for (std::size_t i = 0; i < count; ++i) {
      const double u = random.next();
      if (axes_[axis].num_choices > 0) {
        points[axis][i] = sample_categorical(axis, kernel[i], u, row);
        continue;
      }
      const double mu = numeric_[axis].mu[kernel[i]];
      const double sigma = numeric_[axis].sigma[kernel[i]];
      const double z =
          truncated_normal_quantile(u, (range.low - mu) / sigma, (range.high - mu) / sigma);
      points[axis][i] = range.to_internal(z * sigma + mu);
    }
  };
  for (std::size_t axis = 0; axis < axes_.size(); ++axis)
    if (!options_.categorical_first || axes_[axis].num_choices > 0) draw(axis);
  for (std::size_t axis = 0; axis < axes_.size(); ++axis)
    if (options_.categorical_first && axes_[axis].num_choices == 0) draw(axis);
  return points;
}

std::vector<double> ParzenEstimator::one_categorical_axis(const std::vector<double>& points) const {
  const std::size_t count = axes_[0].num_choices;
  const double num_choices = static_cast<double>(count);
  std::vector<double> seen(count, 0.0);
  if (options_.adds_kernels_in_order) {
    // Kernel after kernel, as a matrix product goes.
    std::vector<double> row(count, smoothing_);
    const double flat = smoothing_ / numpy_sum(row);
    double missed = 0;
    double matched = 0;
    std::size_t last = count;
    for (std::size_t k = 0; k < num_observations_; ++k) {
      const std::size_t code = codes_[0][k];
      if (code != last) {
        row.assign(count, smoothing_);
        row[code] += 1;
        const double sum = numpy_sum(row);
        missed = smoothing_ / sum;
        matched = row[code] / sum;
        last = code;
      }
      for (std::size_t c = 0; c < count; ++c)
        seen[c] += (c == code ? matched : missed) * weights_[k];
    }
    for (double& density : seen) density = std::log(density + flat * weights_.back());
  } else {
    // With a single axis the mixture has a closed form: the weight each choice was seen with.
    double total = 0;
    for (std::size_t k = 0; k < num_observations_; ++k) {
      seen[codes_[0][k]] += weights_[k];
      total += weights_[k];
    }
    for (double& density : seen)
      density = std::log((density + total * smoothing_) / (1 + num_choices * smoothing_) +
                         weights_.back() / num_choices);
  }
  std::vector<double> result;
  result.reserve(points.size());
  for (const double point : points) result.push_back(seen[static_cast<std::size_t>(point)]);
  return result;
}

void ParzenEstimator::add_numeric_axis(std::size_t axis, double value,
                                       std::span<double> exponents) const {
  const NumericRange& range = axes_[axis].range;
  const Numeric& kernels = numeric_[axis];
  if (!has_discrete_mass(range, options_)) {
    subtract_squares(range.from_internal(value), kernels.mu, kernels.sigma, kernels.log_mass,
                     exponents);
    return;
  }
  const double half = 0.5 * *range.step;
  const double low = std::max(range.from_internal(value - half), range.low);
  const double high = std::min(range.from_internal(value + half), range.high);
  // Kernels sit on few different values when the axis is discrete; neighbours in time often on
  // the same one.
  double last_mu = std::numeric_limits<double>::quiet_NaN();
  double last_sigma = 0;
  double mass = 0;
  for (std::size_t k = 0; k < exponents.size(); ++k) {
    const double mu = kernels.mu[k];
    const double sigma = kernels.sigma[k];
    if (mu != last_mu || sigma != last_sigma)
      mass = log_normal_mass((low - mu) / sigma, (high - mu) / sigma);
    last_mu = mu;
    last_sigma = sigma;
    exponents[k] += mass - kernels.log_mass[k];
  }
}

std::vector<double> ParzenEstimator::log_density_in_order(const Points& points) const {
  if (axes_.size() == 1 && axes_[0].num_choices > 0) return one_categorical_axis(points[0]);
  const std::size_t count = points.empty() ? 0 : points[0].size();
  std::vector<double> result(count);
  std::vector<double> exponents(num_observations_ + 1);
  std::vector<double> row;
  for (std::size_t i = 0; i < count; ++i) {
    std::fill(exponents.begin(), exponents.end(), 0.0);
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (axes_[axis].num_choices == 0) {
        add_numeric_axis(axis, points[axis][i], exponents);
        continue;
      }
      const auto choice = static_cast<std::size_t>(points[axis][i]);
      for (std::size_t k = 0; k <= num_observations_; ++k) {
        row.assign(axes_[axis].num_choices, smoothing_);
        if (k < num_observations_) row[codes_[axis][k]] += 1;
        exponents[k] += std::log(row[choice] / numpy_sum(row));
      }
    }
    for (std::size_t k = 0; k <= num_observations_; ++k) exponents[k] += log_weights_[k];
    const double largest = *std::max_element(exponents.begin(), exponents.end());
    for (double& exponent : exponents) exponent = std::exp(exponent - largest);
    result[i] = std::log(numpy_sum(exponents)) + largest;
  }
  return result;
}

std::vector<double> ParzenEstimator::log_density(const Points& points) const {
  if (axes_.size() == 1 && axes_[0].num_choices > 0) return one_categorical_axis(points[0]);
  const std::size_t count = points.empty() ? 0 : points[0].size();

  // A categorical axis multiplies a kernel by one of two numbers, and the quotient of the two is
  // the same for all axes: only the number of axes that agree matters.
  double base = 0;
  double prior = 0;
  std::vector<std::size_t> categorical;
  std::vector<std::size_t> numeric;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const double num_choices = static_cast<double>(axes_[axis].num_choices);
    (num_choices > 0 ? categorical : numeric).push_back(axis);
    if (num_choices == 0) continue;
    base += std::log(smoothing_ / (1 + num_choices * smoothing_));
    prior -= std::log(num_choices);
  }
  const double per_match = std::log((1 + smoothing_) / smoothing_);

  std::vector<std::uint16_t> matches(count * num_observations_, 0);
  for (std::size_t first = 0; first < num_observations_ && !categorical.empty(); first += kBlock) {
    const std::size_t size = std::min(kBlock, num_observations_ - first);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span counts{matches.data() + i * num_observations_ + first, size};
      for (const std::size_t axis : categorical)
        count_matches(std::span(codes_[axis]).subspan(first, size),
                      static_cast<std::uint16_t>(points[axis][i]), counts);
    }
  }

  std::vector<double> result(count);
  std::vector<double> exponents(num_observations_ + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t* counts = matches.data() + i * num_observations_;
    if (numeric.empty()) {
      // Weights by number of matches, then one exponential for each number.
      std::vector<double> by_matches(categorical.size() + 1, 0.0);
      for (std::size_t k = 0; k < num_observations_; ++k) by_matches[counts[k]] += weights_[k];
      std::size_t most = categorical.size();
      while (most > 0 && by_matches[most] == 0) --most;
      const double flat = prior + std::log(weights_.back());
      const double largest = std::max(base + static_cast<double>(most) * per_match, flat);
      double sum = std::exp(flat - largest);
      for (std::size_t m = 0; m <= most; ++m)
        if (by_matches[m] > 0)
          sum += by_matches[m] * std::exp(base + static_cast<double>(m) * per_match - largest);
      result[i] = largest + std::log(sum);
      continue;
    }
    for (std::size_t k = 0; k < num_observations_; ++k)
      exponents[k] = log_weights_[k] + base + per_match * counts[k];
    exponents.back() = log_weights_.back() + prior;
    for (const std::size_t axis : numeric) add_numeric_axis(axis, points[axis][i], exponents);
    const double largest = *std::max_element(exponents.begin(), exponents.end());
    double sum = 0;
    for (const double exponent : exponents)
      if (exponent > largest - 45) sum += std::exp(exponent - largest);  // below: the last bit
    result[i] = largest + std::log(sum);
  }
  return result;
}

}  // namespace lathe::study
