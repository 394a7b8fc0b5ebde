#pragma once

#include <cstdint>
#include <string>

#include "lathe/hardware/stream.h"

namespace lathe::hardware {

/// The contents of a memory: words of `per_word` elements of `width` bits, the first in the low
/// bits, as $readmemh reads them.
struct MemoryImage {
  int width = 8;
  std::int64_t per_word = 1;
  Values elements = {};

  std::int64_t depth() const { return static_cast<std::int64_t>(elements.size()) / per_word; }
  std::int64_t word_bits() const { return per_word * width; }
  /// One word a line, in hexadecimal digits.
  std::string text() const;
};

}  // namespace lathe::hardware
