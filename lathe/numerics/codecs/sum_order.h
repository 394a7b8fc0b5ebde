#pragma once

#include <cstdint>

namespace lathe::numerics {

/// The order in which magnitudes are added up to a mean: the same for every instruction set, and
/// one that both the vectors of a CPU and the threads of a GPU can follow.
///
/// Sixteen sums side by side: element i of a chunk belongs to sum i modulo 16. Each adds kRun
/// elements in float, which loses next to nothing, and those sums in double; elements behind the
/// last whole run are added one by one. The sixteen are then added by halves. Where that is beyond
/// float the chunk is summed once more with runs of one. Chunks are elements of sixteen sums again.
struct SumOrder {
  static constexpr int kSums = 16;
  static constexpr int kRun = 8;
  static constexpr std::int64_t kChunk = 4096;
};

}  // namespace lathe::numerics
