#pragma once

#include "lathe/study/math/uniform_source.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// How one parameter of a child comes from its parents.
///
/// All of them work in the unit interval, so that logarithmic ranges are searched evenly, and give
/// a valid value of the distribution.

/// Another value than `value`, near it where values are continuous: a normal step of a tenth of the
/// range. With steps or choices any other one is as likely; a single value stays.
double mutate_value(const Distribution& distribution, double value, UniformSource& random);

/// Polynomial mutation (Deb): mostly a small step, the smaller the larger `index`.
double mutate_polynomially(const Distribution& distribution, double value, double index,
                           UniformSource& random);

/// Simulated binary crossover (Deb and Agrawal): a value about as far from one parent as a bit
/// string's child would be, the nearer the larger `index`. Choices come from either.
double cross_numbers(const Distribution& distribution, double a, double b, double index,
                     UniformSource& random);

}  // namespace lathe::study
