#pragma once

#include "lathe/hardware/stream.h"

namespace lathe::hardware {

/// What an element reads when only its own bits of a number are kept.
inline std::int64_t low_bits(std::int64_t value, const Element& element) {
  const int unused = 64 - element.width;  // shifting up and back down copies the sign bit
  const auto up = static_cast<std::uint64_t>(value) << unused;
  return element.is_signed ? static_cast<std::int64_t>(up) >> unused
                           : static_cast<std::int64_t>(up >> unused);
}

}  // namespace lathe::hardware
