#pragma once

// For the tests of attention in numbers of few bits: problems that every kind of it must solve,
// whatever its operands are.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

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

/// Checks that queries have the same bits in any range of them: run(problem, begin, end, out)
/// computes rows [begin, end) of a result and leaves the others alone.
template <typename Problem, typename Run>
void expect_bits_of_the_whole_in_ranges(Run run) {
  for (const bool causal : {false, true}) {
    Problem problem(75, 75, 40);
    problem.causal = causal;
    Matrix whole(problem.lq, problem.d, 5), in_parts(problem.lq, problem.d, 5);
    run(problem, 0, problem.lq, whole);
    for (std::int64_t begin = 0; begin < problem.lq; begin += 13)
      run(problem, begin, std::min<std::int64_t>(begin + 13, problem.lq), in_parts);
    EXPECT_TRUE(in_parts.has_same_bits(whole));
  }
}

}  // namespace lathe::engine
