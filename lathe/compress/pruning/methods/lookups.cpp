#include "lathe/compress/pruning/method.h"

// How often the row of a table was looked up: what never was can go, whatever its numbers are.
namespace lathe::compress::lookups {
namespace {

State score(const ScoringInput& input) {
  State scores;
  for (const PruningUnit& unit : input.units) {
    const GranulePart& part = unit.parts.front();
    const std::vector<std::int64_t>& counts = input.lookups->at(part.state);
    Tensor tensor(DType::F32, input.values.at(part.state).dims());
    const std::span<float> values = tensor.mutable_data<float>();
    for_each_element(
        part, [&](std::size_t row, std::size_t i) { values[i] = static_cast<float>(counts[row]); });
    scores[part.state] = std::move(tensor);
  }
  return scores;
}

const Register registration{PruningMethod{
    .name = "lookups",
    .summary = "rows of the vocabulary that data looks up least; by default those it never does",
    .evidence = PruningEvidence::Lookups,
    .granularities =
        [](const Granularity& granularity) {
          return granularity.kind == Granularity::Kind::Vocabulary;
        },
    .prunes = "the vocabulary",
    .score = score,
}};

}  // namespace
}  // namespace lathe::compress::lookups
