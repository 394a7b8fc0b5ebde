#include "lathe/hardware/memory_image.h"

#include "lathe/core/error.h"

namespace lathe::hardware {

std::string MemoryImage::text() const {
  check(per_word > 0 && static_cast<std::int64_t>(elements.size()) % per_word == 0,
        "a memory image to have whole words");
  const std::int64_t digits = (word_bits() + 3) / 4;
  std::string result;
  result.reserve(static_cast<std::size_t>(depth() * (digits + 1)));
  std::string nibbles(static_cast<std::size_t>(digits), 0);  // of one word, the lowest first
  for (std::int64_t word = 0; word < depth(); ++word) {
    nibbles.assign(static_cast<std::size_t>(digits), 0);
    for (std::int64_t i = 0; i < per_word; ++i) {
      const auto value =
          static_cast<std::uint64_t>(elements[static_cast<std::size_t>(word * per_word + i)]);
      for (int bit = 0; bit < width; ++bit) {
        if (!(value >> bit & 1)) continue;
        const std::int64_t place = i * width + bit;
        char& nibble = nibbles[static_cast<std::size_t>(place / 4)];
        nibble = static_cast<char>(nibble | (1 << (place % 4)));
      }
    }
    for (auto nibble = nibbles.rbegin(); nibble != nibbles.rend(); ++nibble)
      result += "0123456789abcdef"[static_cast<int>(*nibble)];
    result += '\n';
  }
  return result;
}

}  // namespace lathe::hardware
