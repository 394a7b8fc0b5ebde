#include "lathe/study/samplers/grid_order.h"

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

// Of more parts no walk sees much.
constexpr std::size_t kMostParts = 1000;
// Parts of one size have different orders: an odd number far from any seed.
constexpr std::uint64_t kApart = 0x9e3779b97f4a7c15;

}  // namespace

GridOrder::GridOrder(const GridPoints& points, std::uint64_t seed)
    : parts_(points.parts(kMostParts)) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    orders_.emplace_back(parts_[i].size, seed + i * kApart);
}

std::uint64_t GridOrder::number(const GridPoints& points, std::uint64_t position) const {
  // Parts before `first` are over after `round` rounds, and the others take turns.
  std::uint64_t round = 0;
  for (std::size_t first = 0; first < parts_.size(); ++first) {
    const std::uint64_t num_parts = parts_.size() - first;
    const std::uint64_t num_positions = (parts_[first].size - round) * num_parts;
    if (position < num_positions) {
      const std::size_t part = first + position % num_parts;
      return points.number(parts_[part], orders_[part](round + position / num_parts));
    }
    position -= num_positions;
    round = parts_[first].size;
  }
  fail("a grid's position {} is behind its last", position);
}

}  // namespace lathe::study
