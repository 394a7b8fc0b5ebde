#pragma once

namespace lathe::study {

/// Logarithm of the standard normal distribution function; good in both tails, where the function
/// itself is 0 or 1.
double log_normal_cdf(double x);
/// Logarithm of the probability between `a` and `b`, a < b.
double log_normal_mass(double a, double b);
/// The point at which the logarithm of the distribution function is `log_probability`.
double inverse_log_normal_cdf(double log_probability);
/// The point between `a` and `b` below which the share `u` of the probability between them lies.
double truncated_normal_quantile(double u, double a, double b);

}  // namespace lathe::study
