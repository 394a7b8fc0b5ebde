#include "lathe/study/math/keyed_permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace lathe::study {
namespace {

TEST(KeyedPermutation, HoldsEveryNumberOnce) {
  for (const std::uint64_t size : {1, 2, 3, 16, 17, 1000, 4097}) {
    const KeyedPermutation order(size, 7);
    std::vector<bool> seen(size, false);
    for (std::uint64_t i = 0; i < size; ++i) {
      ASSERT_LT(order(i), size);
      ASSERT_FALSE(seen[order(i)]) << size;
      seen[order(i)] = true;
    }
  }
}

TEST(KeyedPermutation, DiffersByKeyAndLooksRandom) {
  const KeyedPermutation first(10000, 1);
  const KeyedPermutation second(10000, 2);
  int equal = 0;
  int rising = 0;
  for (std::uint64_t i = 0; i < 9999; ++i) {
    equal += first(i) == second(i);
    rising += first(i) < first(i + 1);
  }
  EXPECT_LE(equal, 8);             // one is expected
  EXPECT_NEAR(rising, 5000, 150);  // five standard deviations of 29
}

TEST(KeyedPermutation, NeedsNoMemoryForBillions) {
  const KeyedPermutation order(std::uint64_t{1} << 62, 5);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(order(i)).second);
}

}  // namespace
}  // namespace lathe::study
