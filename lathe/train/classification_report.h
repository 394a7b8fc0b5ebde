#pragma once

#include <cstdint>
#include <vector>

namespace lathe::train {

/// How well one class is told from the others.
struct ClassScore {
  std::int64_t examples = 0;   ///< that are of the class
  std::int64_t predicted = 0;  ///< that were taken for it
  double precision = 0;        ///< share of the predicted that are right; 0 when none are
  double recall = 0;           ///< share of the examples that were found; 0 when there are none
  double f1 = 0;               ///< harmonic mean of the two
};

/// Scores of each class, of a confusion matrix [true label][predicted label].
std::vector<ClassScore> class_scores(const std::vector<std::vector<std::int64_t>>& confusion);

/// The mean F1 of the classes, each counting the same.
double macro_f1(const std::vector<ClassScore>& scores);

}  // namespace lathe::train
