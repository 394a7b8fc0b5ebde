#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lathe/engine/cuda/arguments/attention.h"

// Into how many parts the keys of attention's gradient in float are cut.
namespace lathe::engine::cuda {
namespace {

constexpr std::int64_t kMultiprocessors = 132;

struct Batch {
  std::int64_t sequences, length, heads;
};

std::int64_t parts_of(const Batch& batch) {
  const std::int64_t tokens = batch.sequences * batch.length;
  return num_query_parts(tokens, tokens, batch.sequences, batch.heads, batch.heads, 64);
}

// Tiles of keys that the busiest multiprocessor goes through when each takes the next block as soon
// as it is free, blocks lying in the order of the grid.
std::int64_t busiest(const Batch& batch, std::int64_t parts) {
  const std::int64_t tiles = (batch.length + kAttentionTile - 1) / kAttentionTile;
  std::vector<std::int64_t> done(kMultiprocessors);
  for (std::int64_t head = 0; head < batch.heads; ++head)
    for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
      for (std::int64_t part = 0; part < parts; ++part)
        *std::ranges::min_element(done) += (tiles - part + parts - 1) / parts;
  return *std::ranges::max_element(done);
}

TEST(QueryParts, NoOtherNumberIsDoneMuchSooner) {
  for (const Batch& batch : {Batch{32, 512, 2},
                             {8, 512, 2},
                             {1, 512, 2},
                             {16, 384, 2},
                             {3, 200, 12},
                             {32, 128, 12},
                             {128, 512, 8},
                             {1, 64, 1}}) {
    const std::int64_t chosen = busiest(batch, parts_of(batch));
    const std::int64_t tiles = (batch.length + kAttentionTile - 1) / kAttentionTile;
    const std::int64_t few = std::min(tiles, kLeastQueryParts);
    for (std::int64_t other = 1; other <= few; ++other)
      EXPECT_LE(4 * chosen, 5 * busiest(batch, other))
          << batch.sequences << " x " << batch.length << " in " << other << " parts";
  }
}
TEST(QueryParts, HaveNoBlockWithoutATileNorMoreRoomThanTheScratch) {
  EXPECT_EQ(parts_of({32, 512, 2}), 8);
  EXPECT_EQ(parts_of({8, 512, 2}), 8);
  EXPECT_EQ(parts_of({1, 64, 2}), 1);
  EXPECT_EQ(num_query_parts(0, 0, 0, 2, 2, 64), 1);
  for (const std::int64_t sequences : {1, 7, 64, 500}) {
    const std::int64_t tokens = sequences * 512, parts = parts_of({sequences, 512, 12});
    EXPECT_LE(parts * query_part_bytes(tokens, 12, 64),
              attention_gradient_scratch(tokens, tokens, sequences, 12, 64));
  }
}

}  // namespace
}  // namespace lathe::engine::cuda
