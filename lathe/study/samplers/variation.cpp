#include "lathe/study/samplers/variation.h"

#include <algorithm>
#include <cmath>

#include "lathe/study/math/random_draws.h"
#include "lathe/study/uniform_value.h"
#include "lathe/study/unit_space.h"

namespace lathe::study {

namespace {

// Back into the interval as a mirror at its ends would send it.
double reflect(double unit) {
  unit = std::abs(std::fmod(unit, 2.0));
  return unit > 1 ? 2 - unit : unit;
}

}  // namespace

double mutate_value(const Distribution& distribution, double value, UniformSource& random) {
  if (!is_discrete(distribution))
    return from_unit(distribution,
                     reflect(to_unit(distribution, value) + 0.1 * draw_normal(random)));
  if (is_single(distribution)) return value;
  // Few values find another one soon, many at once.
  for (int attempt = 0; attempt < 100; ++attempt)
    if (const double other = uniform_value(distribution, random); other != value) return other;
  return value;
}

double mutate_polynomially(const Distribution& distribution, double value, double index,
                           UniformSource& random) {
  if (num_choices(distribution) > 0) return uniform_value(distribution, random);
  const double draw = random.next();
  const double power = 1 / (index + 1);
  const double step =
      draw < 0.5 ? std::pow(2 * draw, power) - 1 : 1 - std::pow(2 - 2 * draw, power);
  return from_unit(distribution, to_unit(distribution, value) + step);
}

double cross_numbers(const Distribution& distribution, double a, double b, double index,
                     UniformSource& random) {
  if (num_choices(distribution) > 0 || a == b) return random.next() < 0.5 ? a : b;
  const double draw = random.next();
  const double power = 1 / (index + 1);
  const double ratio = draw < 0.5 ? std::pow(2 * draw, power) : std::pow(1 / (2 - 2 * draw), power);
  double first = to_unit(distribution, a);
  double second = to_unit(distribution, b);
  if (random.next() < 0.5) std::swap(first, second);
  return from_unit(distribution, 0.5 * ((1 + ratio) * first + (1 - ratio) * second));
}

}  // namespace lathe::study
