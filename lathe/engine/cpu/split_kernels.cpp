#include "lathe/engine/cpu/split_kernels.h"

#include <algorithm>
#include <cmath>

#include "lathe/engine/cpu/tile_registers.h"

namespace lathe::engine {

namespace split_amx {
extern const SplitKernels split_table;
}
namespace split_tiles {
extern const SplitKernels split_table;
}

namespace {

// Smaller products are over before tiles are, and their neighbours count for more.
constexpr std::int64_t kLeastElements = std::int64_t{1} << 18;
// Each element of x is split for so many columns, and each sum is finished for so much depth.
constexpr std::int64_t kLeastExtent = 256;

// Of rows that a thread keeps, so many take 0.6 MiB, 768 deep; of those that a block splits for
// itself, a piece at a time, as many.
constexpr std::int64_t kMostKeptRows = 128;
constexpr std::int64_t kMostRows = 256;
constexpr double kRowShare = 0.2;
// Parts have six bytes, and so many are half of a second-level cache. More would be written to and
// read from farther away; blocks split such rows anew, a piece at a time.
constexpr std::int64_t kNearElements = 200 << 10;
constexpr double kFarCycles = 1;
// To split a number of a packed weight beside the tiles.
constexpr double kPackedCycles = 0.7;
// To split a number of a weight that is not packed: more rows at a time are worth their room.
constexpr double kLyingCycles = 1;
constexpr double kLastBlock = 0.25;

}  // namespace

const SplitKernels* split_kernels(Isa isa) {
  return isa == Isa::Avx512 && has_bf16_tiles() && has_bf16_conversion() ? &split_amx::split_table
                                                                         : nullptr;
}

std::vector<const SplitKernels*> every_split_kernels() {
  std::vector<const SplitKernels*> result;
  if (!has_bf16_conversion()) return {};
  result.push_back(&split_tiles::split_table);
  if (has_bf16_tiles()) result.push_back(&split_amx::split_table);
  return result;
}

bool may_be_split(const Graph& graph) {
  return graph.nodes_of("cached_attention").empty();
}

bool has_split_size(std::int64_t n, std::int64_t k) {
  return n * k >= kLeastElements && n >= kLeastExtent && k >= kLeastExtent;
}

bool has_split_extents(std::int64_t n, std::int64_t k) {
  return has_split_size(n, k) && k % kSplitGrain == 0;
}

bool suits_split(std::span<const float> weight, std::int64_t n, std::int64_t k) {
  return has_split_extents(n, k) && std::all_of(weight.begin(), weight.end(), [](float a) {
           return std::abs(a) < kMostSplitWeight;
         });
}

bool keeps_split_rows(std::int64_t rows, std::int64_t k) {
  return rows * k <= kNearElements;
}

PartitionLimits lying_split_limits() {
  return {.most_rows = kMostRows,
          .keeps_tiles = true,
          .operand_cycles = kLyingCycles,
          .row_share = kRowShare,
          .near_elements = kNearElements,
          .far_cycles = kFarCycles,
          .last_block = kLastBlock};
}

PartitionLimits split_limits(bool keeps_rows) {
  if (keeps_rows)
    return {.most_rows = kMostKeptRows,
            .keeps_tiles = true,
            .operand_cycles = kPackedCycles,
            .row_share = kRowShare,
            .near_elements = kNearElements,
            .far_cycles = kFarCycles};
  return {.most_rows = kMostRows, .last_block = kLastBlock};
}

}  // namespace lathe::engine
