#pragma once

#include <cstdint>

#include "lathe/core/philox.h"

namespace lathe::numerics {

/// The 32 random bits of an element: a function of the seed and of where it is in its tensor, so
/// that stochastic rounding does not depend on threads or on how a tensor is cut into tiles.
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t at(std::int64_t element) {
    const auto index = static_cast<std::uint64_t>(element);
    if (const std::uint64_t group = index / 4; group != group_ || !has_group_) {
      group_ = group;
      has_group_ = true;
      numbers_ = philox({static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32),
                         0x726f756eu, 0x64696e67u},
                        seed_);
    }
    return numbers_[index % 4];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t group_ = 0;
  bool has_group_ = false;
  PhiloxCounter numbers_{};
};

}  // namespace lathe::numerics
