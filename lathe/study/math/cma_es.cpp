#include "lathe/study/math/cma_es.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/study/math/random_draws.h"
#include "lathe/study/math/symmetric_eigen.h"

namespace lathe::study {

namespace {

constexpr double kSmallestStep = 1e-7;     // no objective tells closer points apart
constexpr double kLargestStep = 1;         // the cube is no wider
constexpr double kLargestCondition = 1e7;  // of the axes

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The probability of a normal number above `z`, and the z of such a probability below one half.
double tail(double z) {
  return 0.5 * std::erfc(z / std::sqrt(2));
}
double tail_quantile(double probability) {
  double low = 0;
  double high = 8;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (tail(middle) > probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

CmaEs::CmaEs(std::vector<double> mean, double sigma, int population,
             std::vector<std::vector<double>> borders)
    : n_(static_cast<int>(mean.size())),
      population_(population > 0 ? population : 4 + static_cast<int>(3 * std::log(n_))),
      num_parents_(population_ / 2),
      mean_(std::move(mean)),
      sigma_(sigma),
      path_(n_, 0.0),
      sigma_path_(n_, 0.0),
      borders_(std::move(borders)),
      spread_(n_, 1.0) {
  check(n_ > 0 && population_ >= 4 && static_cast<int>(borders_.size()) == n_,
        "at least one coordinate and a population of four");
  const double n = n_;
  double positive = 0, positive_squares = 0, negative = 0, negative_squares = 0;
  for (int i = 0; i < population_; ++i) {
    weights_.push_back(std::log((population_ + 1) / 2.0) - std::log(i + 1.0));
    const bool is_parent = i < num_parents_;
    (is_parent ? positive : negative) += weights_[i];
    (is_parent ? positive_squares : negative_squares) += weights_[i] * weights_[i];
  }
  mass_ = positive * positive / positive_squares;
  const double negative_mass = negative * negative / negative_squares;

  rate_one_ = 2 / ((n + 1.3) * (n + 1.3) + mass_);
  rate_many_ =
      std::min(1 - rate_one_ - 1e-8, 2 * (mass_ - 2 + 1 / mass_) / ((n + 2) * (n + 2) + mass_));
  // How much the worse half may count without the matrix losing its definiteness.
  const double limit = std::min({1 + rate_one_ / rate_many_, 1 + 2 * negative_mass / (mass_ + 2),
                                 (1 - rate_one_ - rate_many_) / (n * rate_many_)});
  double negative_sum = 0;
  for (const double weight : weights_) negative_sum += std::max(-weight, 0.0);
  const double positive_sum =
      std::accumulate(weights_.begin(), weights_.end(), 0.0,
                      [](double sum, double weight) { return sum + std::max(weight, 0.0); });
  for (double& weight : weights_) weight *= weight > 0 ? 1 / positive_sum : limit / negative_sum;

  rate_sigma_ = (mass_ + 2) / (n + mass_ + 5);
  damping_ = 1 + 2 * std::max(0.0, std::sqrt((mass_ - 1) / (n + 1)) - 1) + rate_sigma_;
  rate_path_ = (4 + mass_ / n) / (n + 4 + 2 * mass_ / n);
  norm_ = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));

  covariance_.assign(n_ * n_, 0.0);
  for (int i = 0; i < n_; ++i) covariance_[i * n_ + i] = 1;
  decompose();
  keep_margin();
}

void CmaEs::decompose() {
  SymmetricEigen eigen = symmetric_eigen(covariance_, n_);
  axes_ = std::move(eigen.vectors);
  lengths_ = std::move(eigen.values);
  for (double& length : lengths_) length = std::sqrt(std::max(length, 1e-16));
}

double CmaEs::deviation(int coordinate) const {
  return sigma_ * spread_[coordinate] * std::sqrt(covariance_[coordinate * n_ + coordinate]);
}

std::vector<double> CmaEs::sample(UniformSource& random) const {
  std::vector<double> point(n_);
  // Outside the cube there is nothing to evaluate: draw again, and give in after a while.
  for (int attempt = 0; attempt <= 10 * n_; ++attempt) {
    std::vector<double> step(n_);
    for (int k = 0; k < n_; ++k) step[k] = lengths_[k] * draw_normal(random);
    bool is_inside = true;
    for (int i = 0; i < n_; ++i) {
      double sum = 0;
      for (int k = 0; k < n_; ++k) sum += axes_[i * n_ + k] * step[k];
      point[i] = mean_[i] + sigma_ * sum;
      is_inside &= !borders_[i].empty() || (point[i] >= 0 && point[i] <= 1);
    }
    if (is_inside) return point;
  }
  for (int i = 0; i < n_; ++i)
    if (borders_[i].empty()) point[i] = std::clamp(point[i], 0.0, 1.0);
  return point;
}

std::vector<double> CmaEs::evaluated(const std::vector<double>& point) const {
  std::vector<double> place(point);
  for (int i = 0; i < n_; ++i) {
    if (borders_[i].empty()) continue;
    place[i] = std::clamp(mean_[i] + spread_[i] * (point[i] - mean_[i]), 0.0, 1.0);
  }
  return place;
}

void CmaEs::update(std::vector<Solution> solutions) {
  check(static_cast<int>(solutions.size()) == population_, "a whole generation");
  std::stable_sort(solutions.begin(), solutions.end(),
                   [](const Solution& a, const Solution& b) { return a.loss < b.loss; });
  ++generation_;
  std::vector<std::vector<double>> steps;
  for (const Solution& solution : solutions) {
    steps.emplace_back(n_);
    for (int i = 0; i < n_; ++i) steps.back()[i] = (solution.point[i] - mean_[i]) / sigma_;
  }
  std::vector<double> move(n_, 0.0);
  for (int k = 0; k < num_parents_; ++k)
    for (int i = 0; i < n_; ++i) move[i] += weights_[k] * steps[k][i];
  for (int i = 0; i < n_; ++i) mean_[i] += sigma_ * move[i];

  // The step as the standard normal number it would have been drawn from, up to a rotation that
  // leaves its length alone.
  const auto whitened = [&](const std::vector<double>& step) {
    std::vector<double> white(n_, 0.0);
    for (int k = 0; k < n_; ++k) {
      double along = 0;
      for (int i = 0; i < n_; ++i) along += axes_[i * n_ + k] * step[i];
      for (int i = 0; i < n_; ++i) white[i] += axes_[i * n_ + k] * along / lengths_[k];
    }
    return white;
  };
  const std::vector<double> white = whitened(move);
  const double gain = std::sqrt(rate_sigma_ * (2 - rate_sigma_) * mass_);
  for (int i = 0; i < n_; ++i)
    sigma_path_[i] = (1 - rate_sigma_) * sigma_path_[i] + gain * white[i];
  const double length = std::sqrt(dot(sigma_path_, sigma_path_));

  // A long path says that the step size is about to grow: the covariance waits meanwhile.
  const double settled = std::sqrt(1 - std::pow(1 - rate_sigma_, 2 * (generation_ + 1)));
  const double steady = length / settled < (1.4 + 2.0 / (n_ + 1)) * norm_ ? 1 : 0;
  const double path_gain = steady * std::sqrt(rate_path_ * (2 - rate_path_) * mass_);
  for (int i = 0; i < n_; ++i) path_[i] = (1 - rate_path_) * path_[i] + path_gain * move[i];

  double weight_sum = 0;
  for (const double weight : weights_) weight_sum += weight;
  const double kept = 1 - rate_one_ - rate_many_ * weight_sum +
                      rate_one_ * (1 - steady) * rate_path_ * (2 - rate_path_);
  std::vector<double> scaled = weights_;
  for (int k = 0; k < population_; ++k) {
    if (weights_[k] >= 0) continue;
    const std::vector<double> each = whitened(steps[k]);
    scaled[k] *= n_ / (dot(each, each) + 1e-8);
  }
  for (int i = 0; i < n_; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = kept * covariance_[i * n_ + j] + rate_one_ * path_[i] * path_[j];
      for (int k = 0; k < population_; ++k)
        sum += rate_many_ * scaled[k] * steps[k][i] * steps[k][j];
      covariance_[i * n_ + j] = sum;
      covariance_[j * n_ + i] = sum;
    }
  }
  sigma_ *= std::exp(rate_sigma_ / damping_ * (length / norm_ - 1));
  decompose();
  const double longest = *std::max_element(lengths_.begin(), lengths_.end());
  sigma_ = std::min(sigma_, kLargestStep / longest);
  keep_margin();
}

// Moves and widens discrete coordinates until each neighbour of the mean's cell has at least its
// share of the probability.
void CmaEs::keep_margin() {
  const double margin = 1.0 / (n_ * population_);
  for (int i = 0; i < n_; ++i) {
    if (borders_[i].empty()) continue;
    const auto above = std::upper_bound(borders_[i].begin(), borders_[i].end(), mean_[i]);
    const bool is_first = above == borders_[i].begin();
    const bool is_last = above == borders_[i].end();
    if (is_first || is_last) {
      // Only one way out: come close enough to it.
      const double border = is_first ? *above : *std::prev(above);
      const double reach = deviation(i) * tail_quantile(margin);
      mean_[i] = is_first ? std::max(mean_[i], border - reach) : std::min(mean_[i], border + reach);
      continue;
    }
    const double low = *std::prev(above);
    const double high = *above;
    double down = tail((mean_[i] - low) / deviation(i));
    double up = tail((high - mean_[i]) / deviation(i));
    if (down >= margin / 2 && up >= margin / 2) continue;
    const double stay = 1 - down - up;
    down = std::max(down, margin / 2);
    up = std::max(up, margin / 2);
    // What was added is taken from the three in proportion to what they can spare.
    const double excess = down + up + stay - 1;
    const double spare = down + up + stay - 1.5 * margin;
    down -= excess * (down - margin / 2) / spare;
    up -= excess * (up - margin / 2) / spare;
    const double below = tail_quantile(std::clamp(down, 1e-10, 0.5 - 1e-10));
    const double beyond = tail_quantile(std::clamp(up, 1e-10, 0.5 - 1e-10));
    spread_[i] *= (high - low) / (below + beyond) / deviation(i);
    mean_[i] = (low * beyond + high * below) / (below + beyond);
  }
}

bool CmaEs::has_converged() const {
  const auto [shortest, longest] = std::minmax_element(lengths_.begin(), lengths_.end());
  if (*longest > *shortest * kLargestCondition || !(sigma_ > 0)) return true;
  for (int i = 0; i < n_; ++i) {
    // The margin keeps discrete coordinates moving: they have converged when they would stop
    // without it.
    const double step = sigma_ * std::sqrt(covariance_[i * n_ + i]);
    const double least = borders_[i].empty()
                             ? kSmallestStep
                             : 1e-3 / (1.0 + static_cast<double>(borders_[i].size()));
    if (step > least) return false;
  }
  return true;
}

}  // namespace lathe::study
