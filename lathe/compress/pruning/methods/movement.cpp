#include <cmath>

#include "lathe/compress/pruning/method.h"
#include "lathe/core/error.h"

// Movement: what training moves towards zero goes first. A training graph keeps the sums of -w
// dL/dw (train/movement.h), so the method works while a model trains only. Sanh et al. (2020) rank
// these sums alone; they let weights come back. Here what is pruned stays out, and the lowest sums
// are of large weights that gradients happened to push inwards: the most important ones would go
// first. So the score is where a weight's magnitude is, and where it is pushed to: both in units of
// their own root mean square, which makes layers comparable too.
namespace lathe::compress::movement {
namespace {

// Adds x over its root mean square among what is left to the scores.
void add_scaled(std::span<const float> x, std::size_t num_left, std::span<float> scores) {
  double squares = 0;
  for (const float each : x) squares += static_cast<double>(each) * each;
  if (squares == 0) return;
  const double scale = std::sqrt(static_cast<double>(num_left) / squares);
  for (std::size_t i = 0; i < x.size(); ++i) scores[i] += static_cast<float>(x[i] * scale);
}

State score(const ScoringInput& input) {
  check(input.movement != nullptr, "the movement of the weights");
  State result;
  for (const auto& [name, weight] : input.values) {
    const std::span<const float> values = weight.data<float>();
    const std::span<const float> moved = input.movement->at(name).data<float>();
    std::vector<float> sizes(values.size()), pushes(values.size());
    std::size_t num_left = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sizes[i] = std::abs(values[i]);
      pushes[i] = sizes[i] > 0 ? moved[i] / sizes[i] : 0.0f;
      num_left += sizes[i] > 0 ? 1 : 0;
    }
    Tensor scores(DType::F32, weight.dims());
    add_scaled(sizes, num_left, scores.mutable_data<float>());
    add_scaled(pushes, num_left, scores.mutable_data<float>());
    result[name] = std::move(scores);
  }
  return result;
}

const Register registration{PruningMethod{
    .name = "movement",
    .summary = "what is small and moves towards zero; while a model trains only",
    .evidence = PruningEvidence::Training,
    .scope = PruningScope::Local,
    .score = score,
}};

}  // namespace
}  // namespace lathe::compress::movement
