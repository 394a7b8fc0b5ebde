#include "lathe/engine/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "lathe/core/error.h"

namespace lathe::engine {

namespace {

constexpr std::int64_t kAlignment = 64;

// No offset is larger than all sizes together, so that none below can overflow.
void check_total(std::span<const Lifetime> lifetimes) {
  std::int64_t total = 0;
  for (const Lifetime& each : lifetimes) {
    check(each.bytes >= 0, "buffers of no negative size");
    if (__builtin_add_overflow(total, each.bytes, &total) ||
        __builtin_add_overflow(total, kAlignment, &total))
      fail("the values of a run do not fit in memory");
  }
}

}  // namespace

// Largest first, each into the lowest gap that the buffers alive beside it leave. Within a few per
// cent of the best layout on transformer plans, where few sizes occur.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  check_total(lifetimes);
  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });
  std::vector<std::size_t> placed;  // sorted by offset
  for (const std::size_t index : order) {
    const Lifetime& wanted = lifetimes[index];
    const std::int64_t bytes = (wanted.bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      const Lifetime& taken = lifetimes[other];
      if (taken.last < wanted.first || wanted.last < taken.first) continue;
      if (plan.offsets[other] >= offset + bytes) break;
      const std::int64_t end =
          plan.offsets[other] + (taken.bytes + kAlignment - 1) / kAlignment * kAlignment;
      offset = std::max(offset, end);
    }
    plan.offsets[index] = offset;
    plan.total = std::max(plan.total, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                   [&](std::size_t a, std::size_t b) {
                                     return plan.offsets[a] < plan.offsets[b];
                                   }),
                  index);
  }
  return plan;
}

}  // namespace lathe::engine
