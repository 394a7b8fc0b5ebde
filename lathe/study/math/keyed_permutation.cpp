#include "lathe/study/math/keyed_permutation.h"

#include "lathe/core/philox.h"

namespace lathe::study {

namespace {

// Philox spreads every bit of a half over the other; four rounds are the least that look random
// from both sides, the others cost nothing that anybody would notice.
constexpr std::uint32_t kRounds = 6;

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t size, std::uint64_t key) : size_(size), key_(key) {
  while (half_bits_ < 32 && std::uint64_t{1} << (2 * half_bits_) < size) ++half_bits_;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t position) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = position >> half_bits_;
    std::uint64_t right = position & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const PhiloxCounter bits = philox({static_cast<std::uint32_t>(right), round, 0, 0}, key_);
      const std::uint64_t mixed = (left ^ bits[0]) & mask;
      left = right;
      right = mixed;
    }
    position = left << half_bits_ | right;
  } while (position >= size_);
  return position;
}

}  // namespace lathe::study
