#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lathe::engine {

/// A buffer that must exist from one stage of a plan to another, both included.
struct Lifetime {
  int first = 0;
  int last = 0;
  std::int64_t bytes = 0;
};

/// Where each buffer lies in one arena.
struct MemoryPlan {
  std::vector<std::int64_t> offsets;
  std::int64_t total = 0;
};

/// Lays buffers out so that those alive at the same time never overlap. Offsets are multiples
/// of 64. Fails when their sizes together do not fit in 64 bits.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace lathe::engine
