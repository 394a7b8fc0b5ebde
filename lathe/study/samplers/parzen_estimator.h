#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lathe/study/math/uniform_source.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

/// How wide the kernels of a numeric axis are.
enum class Bandwidth {
  Neighbors,           ///< the larger gap to a neighbour
  NeighborsWithPrior,  ///< the same with the middle of the range as one more neighbour
  Scott,               ///< 0.2 n^(-1/(d+4)) of the range, the same for all
};

struct KernelOptions {
  double prior_weight = 1;
  Bandwidth bandwidth = Bandwidth::Neighbors;
  /// Kernels get at least a hundredth of the range, more while there are few of them.
  bool magic_clip = true;
  /// The ends of the range count as neighbours of the outermost points.
  bool endpoints = false;
  /// Whole numbers on a logarithmic scale have probabilities rather than densities.
  bool discrete_log = true;
  /// A density is divided by its kernel's width. Optuna 3.1 leaves that out, which makes wide
  /// kernels, the prior's above all, count for more.
  bool divides_by_width = true;
  /// A single categorical axis is summed in the order of Optuna's matrix product, whose rounding
  /// decides between choices that are equally good.
  bool adds_kernels_in_order = false;
  /// All categorical axes are drawn before all numeric ones, not in the order of the axes.
  bool categorical_first = false;
};

/// One coordinate of the points that an estimator is about.
struct Axis {
  std::size_t num_choices = 0;  ///< 0: numeric
  NumericRange range = {};
};
Axis make_axis(const Distribution& distribution);

/// Points by axis: points[axis][i] is coordinate `axis` of point i, in internal form.
using Points = std::vector<std::vector<double>>;

/// A density over a space of mixed axes: one kernel per observed point, the product of one
/// distribution per axis, and a flat prior kernel.
class ParzenEstimator {
 public:
  /// `weights` (one per observation, any scale) say how much each kernel counts beside the prior's
  /// weight.
  ParzenEstimator(std::vector<Axis> axes, const Points& observations,
                  std::span<const double> weights, const KernelOptions& options);

  /// Draws points in the order in which Optuna draws: kernels first, then axis by axis.
  Points sample(UniformSource& random, std::size_t count) const;
  /// The logarithm of the density at each point.
  std::vector<double> log_density(const Points& points) const;
  /// The same, slowly, rounded where Optuna rounds: it decides between points that are equally
  /// good.
  std::vector<double> log_density_in_order(const Points& points) const;

 private:
  struct Numeric {
    std::vector<double> mu;
    std::vector<double> sigma;
    std::vector<double> log_mass;  // of the kernel inside the range
  };

  void fit_numeric(std::size_t axis, const std::vector<double>& observed);
  std::vector<double> one_categorical_axis(const std::vector<double>& points) const;
  void add_numeric_axis(std::size_t axis, double value, std::span<double> exponents) const;
  double sample_categorical(std::size_t axis, std::size_t kernel, double u,
                            std::vector<double>& row) const;

  std::vector<Axis> axes_;
  KernelOptions options_;
  std::size_t num_observations_;
  std::vector<double> weights_;  // normalized; the last is the prior's
  std::vector<double> log_weights_;
  std::vector<std::vector<std::uint16_t>> codes_;  // by axis; empty for a numeric one
  std::vector<Numeric> numeric_;                   // by axis; empty for a categorical one
  double smoothing_;  // what a choice that was not observed counts beside one that was
};

/// 1 for the newest `recent` observations, falling linearly towards the oldest of more than those.
std::vector<double> recency_weights(std::size_t count, std::size_t recent = 25);

}  // namespace lathe::study
