#include <cmath>

#include "lathe/compress/pruning/method.h"

// Magnitude: the smallest weights go first (Han et al. 2015). The score of a granule, the mean of
// its magnitudes, is its L1 norm a weight.
namespace lathe::compress::l1 {
namespace {

State score(const ScoringInput& input) {
  State scores = input.values;
  for (auto& [state, tensor] : scores)
    for (float& value : tensor.mutable_data<float>()) value = std::fabs(value);
  return scores;
}

const Register registration{PruningMethod{
    .name = "l1",
    .summary = "the smallest magnitudes",
    .score = score,
}};

}  // namespace
}  // namespace lathe::compress::l1
