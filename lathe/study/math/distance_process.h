#pragma once

#include <functional>
#include <span>
#include <vector>

namespace lathe::study {

/// A Gaussian process over things that have nothing but distances between them: correlation falls
/// as exp(-distance). Choices, numbers and parameters that may be missing all have a distance, so
/// one model serves spaces of every kind.
class DistanceProcess {
 public:
  /// `distances[i * n + j]` between the n observed things, `losses` their values, less is better.
  /// How fast correlation falls is what explains the values best.
  DistanceProcess(std::span<const double> distances, std::span<const double> losses);

  /// By how much something at these distances from the observed things is expected to undercut the
  /// best of them, in units of the values' spread.
  double expected_improvement(std::span<const double> distances) const;

 private:
  bool fit(std::span<const double> distances, double decay);

  std::size_t count_;
  std::vector<double> values_;   // centred and scaled
  std::vector<double> factor_;   // lower triangle of the correlations' Cholesky factor, by row
  std::vector<double> weights_;  // correlations^-1 values
  double decay_ = 1;
  double variance_ = 1;
  double likelihood_ = 0;  // logarithm, of the last fit
  double best_ = 0;
};

/// Losses with everything far on the bad side taken for equally bad: a crashed trial tells nothing
/// about differences between good ones.
std::vector<double> clipped_losses(std::span<const double> losses);

}  // namespace lathe::study
