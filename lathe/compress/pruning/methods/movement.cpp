#include "lathe/compress/pruning/method.h"
#include "lathe/core/error.h"

// Movement: what training moves towards zero goes first (Sanh et al. 2020). The scores are the sums
// of -w dL/dw that a training graph keeps (train/movement.h), so the method works while a model
// trains only.
namespace lathe::compress::movement {
namespace {

State score(const ScoringInput& input) {
  check(input.movement != nullptr, "the movement of the weights");
  State scores;
  for (const auto& [name, value] : input.values) scores[name] = input.movement->at(name);
  return scores;
}

const Register registration{PruningMethod{
    .name = "movement",
    .summary = "what training moves towards zero; while a model trains only",
    .evidence = PruningEvidence::Training,
    .scope = PruningScope::Global,
    .score = score,
}};

}  // namespace
}  // namespace lathe::compress::movement
