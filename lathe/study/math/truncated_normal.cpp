#include "lathe/study/math/truncated_normal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lathe/study/math/infinity.h"

namespace lathe::study {

namespace {

const double kLogSqrtTwoPi = 0.5 * std::log(2 * std::numbers::pi);

double cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

// log(exp(a) + exp(b)).
double log_sum(double a, double b) {
  const double larger = std::max(a, b);
  if (larger == -kInfinity) return larger;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

}  // namespace

double log_normal_cdf(double x) {
  if (x > 0) return std::log1p(-cdf(-x));
  if (x > -20) return std::log(cdf(x));
  // Mills' ratio as its asymptotic series 1 - 1/x^2 + 3/x^4 - 15/x^6 ...; at x = -20 the eighth
  // term is below the last bit.
  double sum = 1;
  double term = 1;
  for (int i = 1; i <= 8; ++i) sum += term *= -(2 * i - 1) / (x * x);
  return -0.5 * x * x - std::log(-x) - kLogSqrtTwoPi + std::log(sum);
}

double log_normal_mass(double a, double b) {
  if (a > 0) return log_normal_mass(-b, -a);  // the left tail is the accurate one
  if (b > 0) return std::log1p(-cdf(a) - cdf(-b));
  const double log_a = log_normal_cdf(a);
  const double log_b = log_normal_cdf(b);
  return log_b + std::log1p(-std::exp(log_a - log_b));
}

double inverse_log_normal_cdf(double log_probability) {
  if (log_probability >= 0) return kInfinity;
  // Above the median the complement has more digits.
  if (log_probability > -std::numbers::ln2)
    return -inverse_log_normal_cdf(std::log(-std::expm1(log_probability)));
  // The start is a logistic curve near the middle, the leading term of the tail beyond.
  double x = log_probability > -8
                 ? (log_probability - std::log(-std::expm1(log_probability))) / 1.702
                 : -std::sqrt(-2 * (log_probability + kLogSqrtTwoPi));
  // The function is concave and increasing, so Newton's steps converge from any start.
  for (int i = 0; i < 30; ++i) {
    const double value = log_normal_cdf(x);
    const double slope = std::exp(-0.5 * x * x - kLogSqrtTwoPi - value);
    const double step = (value - log_probability) / slope;
    x -= step;
    if (std::abs(step) < 1e-14 * (1 + std::abs(x))) break;
  }
  return x;
}

double truncated_normal_quantile(double u, double a, double b) {
  if (u <= 0) return a;
  if (u >= 1) return b;
  const double log_mass = log_normal_mass(a, b);
  const double x =
      a < 0 ? inverse_log_normal_cdf(log_sum(log_normal_cdf(a), std::log(u) + log_mass))
            : -inverse_log_normal_cdf(log_sum(log_normal_cdf(-b), std::log1p(-u) + log_mass));
  return std::clamp(x, a, b);
}

}  // namespace lathe::study
