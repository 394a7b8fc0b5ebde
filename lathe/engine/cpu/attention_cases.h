#pragma once

// For the tests of attention's kernels: problems that every kind of it must solve, whatever its
// operands are.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {

/// Hands `problem` to `expect` with each way to leave keys out: later ones, masked ones, both, and
/// all of them.
template <typename Problem, typename Expect>
void over_masks(Problem problem, Expect expect) {
  problem.causal = true;
  expect(problem);
  for (std::int64_t j = 0; j < problem.lk; ++j) problem.keep.push_back(j % 3 != 0);
  expect(problem);
  problem.causal = false;
  expect(problem);
  problem.keep.assign(static_cast<std::size_t>(problem.lk), 0);  // then all count equally
  expect(problem);
}

/// Calls a table's attention, which packs keys and values itself or reads them from where they were
/// packed before and from nowhere else.
template <typename Table, typename Args>
void attend(const Table& table, Args args, bool packs_before) {
  const AlignedBuffer packed(table.attention_packed_bytes(args.lk, args.d));
  if (packs_before) {
    table.attention_pack(args, packed.data());
    args.packed = packed.data();
    args.k = args.v = nullptr;
  }
  table.attention(args);
}

/// Checks that queries have the same bits in any range of them, by whomever keys and values are
/// packed: run(problem, begin, end, packs_before, out) computes rows [begin, end) of a result and
/// leaves the others alone.
template <typename Problem, typename Run>
void expect_bits_of_the_whole_in_ranges(Run run) {
  for (const bool causal : {false, true})
    for (const bool has_mask : {false, true}) {
      Problem problem(75, 75, 40);
      problem.causal = causal;
      for (std::int64_t j = 0; has_mask && j < problem.lk; ++j) problem.keep.push_back(j % 3 != 0);
      Matrix whole(problem.lq, problem.d, 5);
      run(problem, 0, problem.lq, false, whole);
      for (const bool packs_before : {false, true}) {
        Matrix in_parts(problem.lq, problem.d, 5);
        for (std::int64_t begin = 0; begin < problem.lq; begin += 13)
          run(problem, begin, std::min<std::int64_t>(begin + 13, problem.lq), packs_before,
              in_parts);
        EXPECT_TRUE(in_parts.has_same_bits(whole));
      }
    }
}

/// Checks that `tile_of` gives each row of a sequence the first one of its tile.
inline void expect_tiles(std::int64_t (*tile_of)(std::int64_t, std::int64_t)) {
  for (const std::int64_t length : {1, 13, 14, 15, 32, 75, 512}) {
    std::int64_t tile = 0;
    for (std::int64_t row = 0; row < length; ++row) {
      if (tile_of(length, row) != tile) tile = row;
      ASSERT_EQ(tile_of(length, row), tile) << "row " << row << " of " << length;
    }
    ASSERT_LT(length - tile, 33);
  }
}

}  // namespace lathe::engine
