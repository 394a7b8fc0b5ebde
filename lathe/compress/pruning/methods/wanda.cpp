#include <cmath>

#include "lathe/compress/pruning/method.h"
#include "lathe/ops/channel_matrix.h"

// Sun et al. 2023: a weight matters by its magnitude times the norm of the feature that it is
// multiplied with, compared within a row, since all weights of a row add to one output. The norm is
// a mean over rows of data: that of a layer which sees one token a text is then as large as
// others'.
namespace lathe::compress::wanda {
namespace {

State score(const ScoringInput& input) {
  State scores;
  for (const PruningUnit& unit : input.units)
    for (const GranulePart& part : unit.parts) {
      if (scores.contains(part.state)) continue;
      Tensor matrix = ops::to_matrix(input.values.at(part.state), part.axis);
      const auto products = input.products->find(part.state);
      const auto columns = static_cast<std::size_t>(part.matrix_columns);
      const std::span<float> values = matrix.mutable_data<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        // A bias is multiplied with 1.
        const double square =
            products == input.products->end() ? 1 : products->second[i % columns * (columns + 1)];
        values[i] = static_cast<float>(std::fabs(values[i]) * std::sqrt(square));
      }
      scores[part.state] = ops::from_matrix(matrix, input.values.at(part.state).dims(), part.axis);
    }
  return scores;
}

const Register registration{PruningMethod{
    .name = "wanda",
    .summary = "the smallest magnitudes times the norm of what they multiply, row by row",
    .evidence = PruningEvidence::Inputs,
    .scope = PruningScope::Row,
    .score = score,
}};

}  // namespace
}  // namespace lathe::compress::wanda
