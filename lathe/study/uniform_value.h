#pragma once

#include "lathe/study/distribution.h"
#include "lathe/study/math/uniform_source.h"

namespace lathe::study {

/// The range of a number on the scale on which it is searched: logarithms where it is logarithmic,
/// half a step wider on both sides where it moves in steps, so that every step has an equal share.
struct NumericRange {
  double low = 0;
  double high = 1;
  bool is_log = false;
  std::optional<double> step = {};  ///< in the distribution's own unit
  double first = 0;                 ///< of the distribution itself
  double last = 1;

  double width() const { return high - low; }
  double from_internal(double internal) const;
  /// The nearest value of the distribution.
  double to_internal(double position) const;
};

/// The range of a float or an int; nothing for a categorical.
std::optional<NumericRange> numeric_range(const Distribution& distribution);
/// The number of choices of a categorical; 0 for the others.
std::size_t num_choices(const Distribution& distribution);

/// A value drawn evenly (on the logarithmic scale where it says so) with one random number.
double uniform_value(const Distribution& distribution, UniformSource& random);

}  // namespace lathe::study
