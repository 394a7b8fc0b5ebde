#pragma once

#include <vector>

#include "lathe/study/math/uniform_source.h"

namespace lathe::study {

/// Covariance matrix adaptation in the unit cube: samples come from a normal distribution that
/// moves to where the better half of each generation was and takes the shape of its steps.
///
/// The equations are those of Hansen's tutorial (2016), with negative weights for the worse half.
/// A coordinate of few values keeps a margin (Hamano and others, 2022): the probability to leave
/// the value it is at never falls below 1 / (dimension * population), or it would get stuck.
class CmaEs {
 public:
  struct Solution {
    std::vector<double> point;  ///< as `sample` gave it
    double loss = 0;
  };

  /// `borders` holds, for each coordinate, the inner borders between its cells in ascending order;
  /// none where it is continuous. `population` 0 chooses 4 + 3 ln n.
  CmaEs(std::vector<double> mean, double sigma, int population,
        std::vector<std::vector<double>> borders);

  int dimension() const { return n_; }
  int population() const { return population_; }

  /// A point for `update`. Continuous coordinates lie in the cube; the others may leave it.
  std::vector<double> sample(UniformSource& random) const;
  /// Where that point is to be evaluated: in the cell that holds each coordinate.
  std::vector<double> evaluated(const std::vector<double>& point) const;
  /// Learns from a generation of `population` solutions.
  void update(std::vector<Solution> solutions);
  /// Whether the distribution has shrunk to a point, or is too distorted to go on.
  bool has_converged() const;

  const std::vector<double>& mean() const { return mean_; }
  double sigma() const { return sigma_; }

 private:
  void decompose();
  void keep_margin();
  double deviation(int coordinate) const;

  int n_;
  int population_;
  int num_parents_;
  int generation_ = 0;
  std::vector<double> weights_;
  double mass_ = 0;        // the effective number of parents
  double rate_path_ = 0;   // c_c of the tutorial
  double rate_sigma_ = 0;  // c_s
  double damping_ = 0;     // d_s
  double rate_one_ = 0;    // c_1
  double rate_many_ = 0;   // c_mu
  double norm_ = 0;        // E|N(0, I)|
  std::vector<double> mean_;
  double sigma_;
  std::vector<double> covariance_;  // row-major
  std::vector<double> axes_;        // eigenvectors as columns
  std::vector<double> lengths_;     // roots of the eigenvalues
  std::vector<double> path_;        // of the covariance
  std::vector<double> sigma_path_;  // of the step size
  std::vector<std::vector<double>> borders_;
  std::vector<double> spread_;  // by which a discrete coordinate is wider than it looks
};

}  // namespace lathe::study
