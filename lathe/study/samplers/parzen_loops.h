#pragma once

#include <cstdint>
#include <span>

namespace lathe::study {

// The two loops in which a density estimate spends its time, in a file that the compiler
// vectorizes.

/// counts[i] += codes[i] == code
void count_matches(std::span<const std::uint16_t> codes, std::uint16_t code,
                   std::span<std::uint16_t> counts);
/// exponents[i] -= 0.5 ((x - mu[i]) / sigma[i])^2 + offset[i]
void subtract_squares(double x, std::span<const double> mu, std::span<const double> sigma,
                      std::span<const double> offset, std::span<double> exponents);

}  // namespace lathe::study
