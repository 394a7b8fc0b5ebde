#include "lathe/engine/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace lathe::engine {
namespace {

TEST(PlanMemory, ReusesTheSpaceOfABufferThatIsNoLongerRead) {
  const std::vector<Lifetime> lifetimes{{0, 1, 128}, {1, 2, 128}, {2, 3, 128}};
  const MemoryPlan plan = plan_memory(lifetimes);
  EXPECT_EQ(plan.total, 256);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
}

TEST(PlanMemory, NeverOverlapsBuffersThatLiveTogether) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(random() % 30);
      lifetimes.push_back({first, first + static_cast<int>(random() % 8),
                           static_cast<std::int64_t>(random() % 5000)});
    }
    const MemoryPlan plan = plan_memory(lifetimes);
    for (std::size_t a = 0; a < lifetimes.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0);
      EXPECT_LE(plan.offsets[a] + lifetimes[a].bytes, plan.total);
      for (std::size_t b = 0; b < a; ++b) {
        if (lifetimes[a].last < lifetimes[b].first || lifetimes[b].last < lifetimes[a].first)
          continue;
        if (lifetimes[a].bytes == 0 || lifetimes[b].bytes == 0) continue;
        EXPECT_TRUE(plan.offsets[a] + lifetimes[a].bytes <= plan.offsets[b] ||
                    plan.offsets[b] + lifetimes[b].bytes <= plan.offsets[a]);
      }
    }
  }
}

}  // namespace
}  // namespace lathe::engine
