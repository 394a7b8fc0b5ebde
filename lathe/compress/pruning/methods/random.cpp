#include "lathe/compress/pruning/method.h"
#include "lathe/core/philox.h"
#include "lathe/ops/channel_matrix.h"

// A number for each granule, by the seed, its unit's name and its place: whatever else is pruned,
// in whatever order, changes nothing. All elements of a granule share its number, or large granules
// would all be mediocre.
namespace lathe::compress::random {
namespace {

// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const char letter : text)
    value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  return value;
}

State score(const ScoringInput& input) {
  State scores;
  for (const PruningUnit& unit : input.units) {
    const std::uint64_t name = hash(unit.name);
    const auto number = [&](std::uint64_t index) {
      const PhiloxCounter bits =
          philox({static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name >> 32),
                  static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)},
                 input.seed);
      return static_cast<float>(unit_interval(bits[0]));
    };
    for (const GranulePart& part : unit.parts) {
      const std::vector<std::int64_t>& dims = input.values.at(part.state).dims();
      Tensor matrix = scores.contains(part.state)
                          ? ops::to_matrix(scores.at(part.state), part.axis)
                          : Tensor(DType::F32, {part.matrix_rows, part.matrix_columns});
      const std::span<float> values = matrix.mutable_data<float>();
      for_each_element(part, [&](std::size_t granule, std::size_t i) {
        values[i] = number(unit.kept > 0 ? i : granule);  // of N:M each element is chosen
      });
      scores[part.state] = ops::from_matrix(matrix, dims, part.axis);
    }
  }
  return scores;
}

const Register registration{PruningMethod{
    .name = "random",
    .summary = "any, by the seed",
    .score = score,
}};

}  // namespace
}  // namespace lathe::compress::random
