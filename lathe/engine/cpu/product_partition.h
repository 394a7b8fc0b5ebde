#pragma once

#include <cstdint>

#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine {

/// result[rows, columns], each element a sum of `depth` products.
struct ProductExtents {
  std::int64_t rows = 0, columns = 0, depth = 0;
  bool operator==(const ProductExtents&) const = default;
};

/// Part of a product's result.
struct Block {
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
  bool operator==(const Block&) const = default;
};

/// What a kernel asks of the blocks it is given.
struct PartitionLimits {
  std::int64_t most_rows = 168;  ///< as many as stay in the second-level cache, a piece deep
  bool cuts_columns = true;
  bool keeps_tiles = false;  ///< rows are cut between tiles only
  /// What a block's core needs for each element of its operands: to fetch it from the third-level
  /// cache while all cores do, and to round and pack it where that is done for each block.
  double operand_cycles = 0.5;
  /// Of that, what rows cost: less where a thread that takes one block after another of the same
  /// rows keeps what it made of them.
  double row_share = 1;
  /// Up to so many elements of rows, what it made of them stays near; of more, each costs so many
  /// cycles in every block.
  std::int64_t near_elements = std::int64_t{1} << 62;
  double far_cycles = 0;
  /// Cores are not equally fast: others use them too. A thread that ends first takes what is left,
  /// so the last block that somebody takes costs, on average, this share of it. Measured: where a
  /// block costs more than its multiply-adds, fewer of them are faster all the same.
  double last_block = 1;
  /// Up to so many rows blocks may begin at any multiple of so many columns, not of the grain's
  /// alone.
  std::int64_t few_rows = 0, few_columns = 0;
};

/// A product's result cut into blocks for threads to compute. The depth is not cut here, so that a
/// result has the same bits in whatever block it lies: the cut may follow the number of threads.
class Partition {
 public:
  Partition(const ProductExtents& extents, const ProductGrain& grain, std::int64_t row_blocks,
            std::int64_t column_blocks, bool keeps_tiles = false)
      : extents_(extents),
        grain_(grain),
        row_blocks_(row_blocks),
        column_blocks_(column_blocks),
        row_step_(keeps_tiles ? grain.rows : 1) {}

  std::int64_t count() const { return row_blocks_ * column_blocks_; }
  std::int64_t row_blocks() const { return row_blocks_; }
  std::int64_t column_blocks() const { return column_blocks_; }
  const ProductGrain& grain() const { return grain_; }
  /// Neighbours in order have the same columns, so that threads which start together read the same
  /// weights.
  Block block(std::int64_t index) const;
  /// Rows and columns of the largest block.
  Block largest() const;
  /// The same rows with as many cuts of columns as there can be.
  Partition by_panels() const;

 private:
  ProductExtents extents_;
  ProductGrain grain_;
  std::int64_t row_blocks_, column_blocks_;
  std::int64_t row_step_;  // rows are cut at multiples of it
};

/// The cut that the cost model expects to end first on so many threads: the multiply-adds of the
/// kernels' tiles, full or not, what each block reads and writes beyond its core's own caches, and
/// the threads that have nothing left to do while the last blocks are computed.
Partition make_partition(const ProductExtents& extents, const ProductGrain& grain, int threads,
                         const PartitionLimits& limits = {});

/// The cost model's cycles for one block on one core that does two vector operations a cycle.
double block_cycles(const ProductExtents& extents, const ProductGrain& grain, const Block& block,
                    const PartitionLimits& limits = {});

}  // namespace lathe::engine
