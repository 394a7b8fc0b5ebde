#include "lathe/study/math/distance_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace lathe::study {

namespace {

// What of a value is chance; also keeps the factorization stable where things are close together.
constexpr double kNoise = 0.01;
// Correlation at the mean distance is exp(-1/2) to exp(-4).
constexpr double kDecays[] = {0.5, 1, 2, 4};

}  // namespace

std::vector<double> clipped_losses(std::span<const double> losses) {
  std::vector<double> sorted(losses.begin(), losses.end());
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const double quartile = sorted[sorted.size() / 4];
  const double limit = median + 2 * (median - quartile);
  std::vector<double> result(losses.begin(), losses.end());
  for (double& loss : result) loss = std::min(loss, limit);
  return result;
}

DistanceProcess::DistanceProcess(std::span<const double> distances, std::span<const double> losses)
    : count_(losses.size()), values_(losses.begin(), losses.end()) {
  const double count = static_cast<double>(count_);
  const double mean = std::accumulate(values_.begin(), values_.end(), 0.0) / count;
  double square = 0;
  for (double& value : values_) {
    value -= mean;
    square += value * value;
  }
  const double spread = std::sqrt(square / count);
  if (spread > 0)
    for (double& value : values_) value /= spread;
  best_ = *std::min_element(values_.begin(), values_.end());

  const double total = std::accumulate(distances.begin(), distances.end(), 0.0);
  const double mean_distance = total > 0 ? total / (count * std::max(count - 1, 1.0)) : 1;
  double best_decay = 1 / mean_distance;
  double best_likelihood = -std::numeric_limits<double>::infinity();
  for (const double decay : kDecays) {
    if (!fit(distances, decay / mean_distance) || likelihood_ <= best_likelihood) continue;
    best_likelihood = likelihood_;
    best_decay = decay_;
  }
  if (decay_ != best_decay) fit(distances, best_decay);
}

bool DistanceProcess::fit(std::span<const double> distances, double decay) {
  decay_ = decay;
  factor_.assign(count_ * count_, 0.0);
  for (std::size_t i = 0; i < count_; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      factor_[i * count_ + j] = std::exp(-decay * distances[i * count_ + j]);
    factor_[i * count_ + i] = 1 + kNoise;
  }
  double log_determinant = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    double* row = factor_.data() + i * count_;
    for (std::size_t j = 0; j <= i; ++j) {
      const double* other = factor_.data() + j * count_;
      double rest = row[j];
      for (std::size_t k = 0; k < j; ++k) rest -= row[k] * other[k];
      if (j < i) {
        row[j] = rest / other[j];
        continue;
      }
      if (rest <= 0) return false;
      row[i] = std::sqrt(rest);
      log_determinant += std::log(row[i]);
    }
  }
  // Forwards for the likelihood, and back for the weights.
  weights_ = values_;
  double square = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    for (std::size_t k = 0; k < i; ++k) weights_[i] -= factor_[i * count_ + k] * weights_[k];
    weights_[i] /= factor_[i * count_ + i];
    square += weights_[i] * weights_[i];
  }
  variance_ = std::max(square / static_cast<double>(count_), 1e-12);
  likelihood_ = -0.5 * static_cast<double>(count_) * std::log(variance_) - log_determinant;
  for (std::size_t i = count_; i-- > 0;) {
    for (std::size_t k = i + 1; k < count_; ++k)
      weights_[i] -= factor_[k * count_ + i] * weights_[k];
    weights_[i] /= factor_[i * count_ + i];
  }
  return true;
}

double DistanceProcess::expected_improvement(std::span<const double> distances) const {
  std::vector<double> known(count_);
  double mean = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    known[i] = std::exp(-decay_ * distances[i]);
    mean += known[i] * weights_[i];
  }
  double unknown = 1;
  for (std::size_t i = 0; i < count_; ++i) {
    const double* row = factor_.data() + i * count_;
    for (std::size_t k = 0; k < i; ++k) known[i] -= row[k] * known[k];
    known[i] /= row[i];
    unknown -= known[i] * known[i];
  }
  const double deviation = std::sqrt(std::max(unknown, 1e-9) * variance_);
  const double z = (best_ - mean) / deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return deviation * (z * 0.5 * std::erfc(-z / std::numbers::sqrt2) + density);
}

}  // namespace lathe::study
