#include "lathe/engine/cpu/product_partition.h"

#include <gtest/gtest.h>

#include <vector>

namespace lathe::engine {
namespace {

constexpr ProductGrain kGrain{14, 32};

TEST(ProductPartition, CoversEachElementOnce) {
  for (const ProductExtents extents :
       {ProductExtents{1, 1, 1}, {2048, 768, 768}, {3, 70, 9}, {128, 3072, 768}, {0, 64, 64}})
    for (const int threads : {1, 2, 7, 16, 64}) {
      const Partition cut = make_partition(extents, kGrain, threads);
      std::vector<int> covered(static_cast<std::size_t>(extents.rows * extents.columns), 0);
      for (std::int64_t i = 0; i < cut.count(); ++i) {
        const Block block = cut.block(i);
        EXPECT_LE(block.rows, cut.largest().rows);
        EXPECT_LE(block.columns, cut.largest().columns);
        EXPECT_EQ(block.column % kGrain.columns, 0);
        for (std::int64_t r = block.row; r < block.row + block.rows; ++r)
          for (std::int64_t c = block.column; c < block.column + block.columns; ++c)
            ++covered[static_cast<std::size_t>(r * extents.columns + c)];
      }
      EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
    }
}

TEST(ProductPartition, GivesEveryThreadABlockOfOneSequence) {
  for (const std::int64_t columns : {768, 3072}) {
    SCOPED_TRACE(columns);
    const ProductExtents extents{128, columns, 768};
    // Either the same number for each, or so many that who is late with one holds up nobody long.
    EXPECT_EQ(make_partition(extents, kGrain, 16, {.last_block = 0.25}).count() % 16, 0);
    EXPECT_GE(make_partition(extents, kGrain, 16, {.last_block = 1}).count(), 4 * 16);
  }
  EXPECT_GE(make_partition({1, 768, 3072}, kGrain, 16).count(), 12);
}

// 24 panels would be two turns, the second half empty.
TEST(ProductPartition, SharesFewRowsEvenly) {
  const PartitionLimits limits{.few_rows = 4, .few_columns = 16};
  for (const std::int64_t depth : {768, 2048}) {
    const Partition cut = make_partition({1, 768, depth}, kGrain, 16, limits);
    EXPECT_EQ(cut.count(), 16);
    EXPECT_EQ(cut.largest().columns, 48);
    EXPECT_LE(make_partition({4, 768, depth}, kGrain, 2, limits).count(), 8);
  }
  EXPECT_EQ(make_partition({5, 768, 768}, kGrain, 16, limits).block(1).column % 32, 0);
}

TEST(ProductPartition, KeepsToTheLimitsOfAKernel) {
  const Partition cut =
      make_partition({1000, 768, 768}, kGrain, 4, {.most_rows = 42, .cuts_columns = false});
  EXPECT_LE(cut.largest().rows, 42);
  EXPECT_EQ(cut.largest().columns, 768);
}

TEST(ProductPartition, CutsRowsBetweenTilesWhereAKernelWantsThemWhole) {
  const ProductExtents extents{500, 768, 768};
  for (const int threads : {2, 16}) {
    const Partition cut = make_partition(extents, kGrain, threads, {.keeps_tiles = true});
    std::int64_t elements = 0;
    for (std::int64_t i = 0; i < cut.count(); ++i) {
      const Block block = cut.block(i);
      EXPECT_EQ(block.row % kGrain.rows, 0);
      EXPECT_LE(block.rows, cut.largest().rows);
      elements += block.rows * block.columns;
    }
    EXPECT_EQ(elements, extents.rows * extents.columns);
  }
}

TEST(ProductPartition, PrefersSquareBlocksToStrips) {
  // Strips would read all weights or all rows for each of them.
  const Block block = make_partition({1536, 1536, 1024}, kGrain, 16, {.most_rows = 448}).largest();
  EXPECT_LE(block.rows, 2 * block.columns);
  EXPECT_LE(block.columns, 2 * block.rows);
}

TEST(ProductPartition, CutsTheSameRowsByPanels) {
  const Partition cut = make_partition({300, 200, 768}, kGrain, 2, {.keeps_tiles = true});
  const Partition panels = cut.by_panels();
  EXPECT_EQ(panels.row_blocks(), cut.row_blocks());
  EXPECT_EQ(panels.column_blocks(), 7);
  EXPECT_EQ(panels.block(0).rows, cut.block(0).rows);
  EXPECT_EQ(panels.block(panels.count() - 1).columns, 200 - 6 * 32);
}

// A block of more rows reads weights less often, as long as what is made of its rows stays near.
TEST(ProductPartition, TakesRowsThatStayNear) {
  PartitionLimits limits{.most_rows = 256, .keeps_tiles = true, .row_share = 0.1};
  const ProductExtents extents{2048, 3072, 3072};
  EXPECT_EQ(make_partition(extents, {32, 32, 2}, 2, limits).largest().rows, 256);
  limits.near_elements = 64 * extents.depth;
  limits.far_cycles = 200;
  EXPECT_EQ(make_partition(extents, {32, 32, 2}, 2, limits).largest().rows, 64);
}

TEST(ProductPartition, LeavesBlocksToTakeForThreadsThatEndFirst) {
  EXPECT_GE(make_partition({2048, 768, 768}, kGrain, 16).count(), 32);
}

}  // namespace
}  // namespace lathe::engine
