#include "lathe/engine/cpu/product_partition.h"

#include <algorithm>

namespace lathe::engine {
namespace {

// To write an element of the result where it was not before.
constexpr double kResultCycles = 1;
// A tile of fewer rows has too few sums to hide an addition's latency.
constexpr std::int64_t kLeastTileCycles = 4;
// To take a block, and to find the code and the first operands of it.
constexpr double kBlockCycles = 1500;
// PartitionLimits::last_block where rows are few: every block makes of its rows what it multiplies
// with, and weights come from memory, which a late thread shares with all others.
constexpr double kLastFewBlock = 0.1;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Part `index` of `count` nearly equal ones.
std::int64_t begin_of(std::int64_t total, std::int64_t index, std::int64_t count) {
  return total * index / count;
}

}  // namespace

Block Partition::block(std::int64_t index) const {
  const std::int64_t row_part = index % row_blocks_, column_part = index / row_blocks_;
  const std::int64_t panels = divide_up(extents_.columns, grain_.columns);
  const auto first_row = [&](std::int64_t part) {
    const std::int64_t steps = divide_up(extents_.rows, row_step_);
    return std::min(extents_.rows, begin_of(steps, part, row_blocks_) * row_step_);
  };
  const std::int64_t row = first_row(row_part);
  const std::int64_t column = begin_of(panels, column_part, column_blocks_) * grain_.columns;
  const std::int64_t end = begin_of(panels, column_part + 1, column_blocks_) * grain_.columns;
  return {row, first_row(row_part + 1) - row, column, std::min(end, extents_.columns) - column};
}

Block Partition::largest() const {
  const std::int64_t panels = divide_up(extents_.columns, grain_.columns);
  const std::int64_t steps = divide_up(divide_up(extents_.rows, row_step_), row_blocks_);
  return {0, std::min(extents_.rows, steps * row_step_), 0,
          std::min(extents_.columns, divide_up(panels, column_blocks_) * grain_.columns)};
}

Partition Partition::by_panels() const {
  Partition result = *this;
  result.column_blocks_ = std::max<std::int64_t>(1, divide_up(extents_.columns, grain_.columns));
  return result;
}

double block_cycles(const ProductExtents& extents, const ProductGrain& grain, const Block& block,
                    const PartitionLimits& limits) {
  const std::int64_t tiles = divide_up(block.rows, grain.rows);
  const std::int64_t panels = divide_up(block.columns, grain.columns);
  if (tiles == 0) return kBlockCycles;
  const std::int64_t tile_cycles = std::max(divide_up(block.rows, tiles), kLeastTileCycles);
  const auto depth = static_cast<double>(extents.depth);
  const double multiplies = static_cast<double>(tiles * panels * tile_cycles) * depth / grain.speed;
  const bool are_near = block.rows * extents.depth <= limits.near_elements;
  const double row_cycles = are_near ? limits.row_share * limits.operand_cycles : limits.far_cycles;
  return kBlockCycles + multiplies +
         (static_cast<double>(block.rows) * row_cycles +
          static_cast<double>(block.columns) * limits.operand_cycles) *
             depth +
         static_cast<double>(block.rows * block.columns) * kResultCycles;
}

Partition make_partition(const ProductExtents& extents, const ProductGrain& of_many, int threads,
                         const PartitionLimits& of_step) {
  ProductGrain grain = of_many;
  PartitionLimits limits = of_step;
  if (limits.few_columns > 0 && extents.rows <= limits.few_rows) {
    grain.columns = limits.few_columns;
    limits.last_block = kLastFewBlock;
  }
  const std::int64_t tiles = std::max<std::int64_t>(1, divide_up(extents.rows, grain.rows));
  const std::int64_t panels = std::max<std::int64_t>(1, divide_up(extents.columns, grain.columns));
  const std::int64_t fewest = std::max<std::int64_t>(
      1, divide_up(extents.rows, std::max<std::int64_t>(1, limits.most_rows)));
  std::int64_t best_rows = fewest, best_columns = 1;
  double least = -1;
  // The next number of parts is the one that makes the largest part smaller.
  const auto next_parts = [](std::int64_t total, std::int64_t parts) {
    const std::int64_t part = divide_up(total, parts);
    return part <= 1 ? total + 1 : divide_up(total, part - 1);
  };
  for (std::int64_t row_blocks = fewest; row_blocks <= std::max(tiles, fewest);
       row_blocks = std::max(row_blocks + 1, next_parts(tiles, row_blocks))) {
    for (std::int64_t column_blocks = 1; column_blocks <= (limits.cuts_columns ? panels : 1);
         column_blocks = next_parts(panels, column_blocks)) {
      const Partition partition(extents, grain, row_blocks, column_blocks, limits.keeps_tiles);
      const double block = block_cycles(extents, grain, partition.largest(), limits);
      const double rounds = static_cast<double>(divide_up(partition.count(), threads));
      const double share =
          std::max(1.0, static_cast<double>(partition.count()) / threads) + limits.last_block;
      const double cycles =
          block * (threads > 1 ? std::max(rounds, share) : static_cast<double>(partition.count()));
      if (least >= 0 && cycles >= least) continue;
      least = cycles;
      best_rows = row_blocks;
      best_columns = column_blocks;
    }
  }
  return {extents, grain, best_rows, best_columns, limits.keeps_tiles};
}

}  // namespace lathe::engine
