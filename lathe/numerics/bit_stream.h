#pragma once

#include <cstdint>

namespace lathe::numerics {

/// Writes codes of up to 32 bits one after the other, the lowest bit of each first, into bytes that
/// are 0 to begin with.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* bytes) : bytes_(bytes) {}
  void put(std::uint32_t code, int bits) {
    std::uint64_t pending = std::uint64_t{code} << (position_ & 7);
    std::uint8_t* byte = bytes_ + (position_ >> 3);
    for (int left = bits + static_cast<int>(position_ & 7); left > 0; left -= 8, pending >>= 8)
      *byte++ |= static_cast<std::uint8_t>(pending);
    position_ += bits;
  }

 private:
  std::uint8_t* bytes_;
  std::int64_t position_ = 0;
};

/// Reads them back.
class BitReader {
 public:
  explicit BitReader(const std::uint8_t* bytes) : bytes_(bytes) {}
  std::uint32_t take(int bits) {
    const int offset = static_cast<int>(position_ & 7);
    const std::uint8_t* byte = bytes_ + (position_ >> 3);
    std::uint64_t gathered = 0;
    for (int have = 0; have < offset + bits; have += 8) gathered |= std::uint64_t{*byte++} << have;
    position_ += bits;
    return static_cast<std::uint32_t>(gathered >> offset & ((std::uint64_t{1} << bits) - 1));
  }
  void skip(std::int64_t bits) { position_ += bits; }

 private:
  const std::uint8_t* bytes_;
  std::int64_t position_ = 0;
};

inline std::int64_t bytes_for_bits(std::int64_t bits) {
  return (bits + 7) / 8;
}

}  // namespace lathe::numerics
