#pragma once

#include <memory>

#include "lathe/core/number_format.h"

namespace lathe::numerics {

inline constexpr int kMostTerms = 8;

/// Numbers that are plus or minus a mean magnitude of their row: binary and ternary formats.
struct TermSpec {
  FormatFacts facts;  ///< text, family and granularity (Row or Tensor); the rest is filled in
  /// Signs an element has, each with its own scale: the mean magnitude of what those before left.
  int terms = 1;
  /// No scales: an element is +1 or -1.
  bool is_unit = false;
  /// Not 0: one term, which is 0 where the magnitude is at most this times the mean magnitude. Its
  /// scale is the mean of the magnitudes above.
  float threshold = 0;
};

std::shared_ptr<const NumberFormat> make_term_format(TermSpec spec);
/// What a format was made of; nullptr for one of another kind. It lives as long as the format.
const TermSpec* find_term_spec(const NumberFormat& format);

}  // namespace lathe::numerics
