#include "lathe/study/samplers/parzen_loops.h"

namespace lathe::study {

void count_matches(std::span<const std::uint16_t> codes, std::uint16_t code,
                   std::span<std::uint16_t> counts) {
  const std::uint16_t* from = codes.data();
  std::uint16_t* to = counts.data();
  for (std::size_t i = 0; i < counts.size(); ++i)
    to[i] = static_cast<std::uint16_t>(to[i] + (from[i] == code ? 1 : 0));
}

void subtract_squares(double x, std::span<const double> mu, std::span<const double> sigma,
                      std::span<const double> offset, std::span<double> exponents) {
  const double* m = mu.data();
  const double* s = sigma.data();
  const double* o = offset.data();
  double* to = exponents.data();
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    const double z = (x - m[i]) / s[i];
    to[i] -= 0.5 * z * z + o[i];
  }
}

}  // namespace lathe::study
