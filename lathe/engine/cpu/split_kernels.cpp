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

}  // namespace

const SplitKernels* split_kernels(Isa isa) {
  return isa == Isa::Avx512 && has_bf16_tiles() ? &split_amx::split_table : nullptr;
}

std::vector<const SplitKernels*> every_split_kernels() {
  std::vector<const SplitKernels*> result;
  if (is_supported(Isa::Avx512)) result.push_back(&split_tiles::split_table);
  if (has_bf16_tiles()) result.push_back(&split_amx::split_table);
  return result;
}

bool suits_split(std::span<const float> weight, std::int64_t n, std::int64_t k) {
  if (n * k < kLeastElements || n < kLeastExtent || k < kLeastExtent || k % kSplitGrain != 0)
    return false;
  return std::all_of(weight.begin(), weight.end(),
                     [](float a) { return std::abs(a) < kMostSplitWeight; });
}

}  // namespace lathe::engine
