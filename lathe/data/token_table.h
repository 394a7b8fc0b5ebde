#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

/// Maps the bytes of a token to its id: an open-addressing table made once and then only read, so
/// any number of threads may look up at the same time and no look-up allocates.
class TokenTable {
 public:
  /// Bytes that must be readable past the end of a text that is looked up.
  static constexpr std::size_t kPadding = 8;
  static constexpr std::int32_t kAbsent = -1;

  /// Makes room for `num_tokens` tokens; call before the first insertion.
  explicit TokenTable(std::size_t num_tokens = 0);

  /// Adds a token, or gives one that is there already its new id.
  void insert(std::string_view text, std::int32_t id);
  /// The id of the `length` bytes at `text`, or kAbsent. kPadding bytes after them must be
  /// readable.
  std::int32_t find(const char* text, std::size_t length) const {
    const std::uint64_t first = first_bytes(text, length);
    for (std::size_t slot = hash(text, length, first) >> shift_;; slot = (slot + 1) & mask_) {
      const Slot& candidate = slots_[slot];
      if (candidate.id == kAbsent) return kAbsent;
      if (holds(candidate, text, length, first)) return candidate.id;
    }
  }
  /// The length in bytes of the longest token.
  std::size_t longest() const { return longest_; }

 private:
  // The first eight bytes are in the slot itself: most words are no longer than that, and then a
  // look-up touches a single cache line.
  struct Slot {
    std::uint64_t first = 0;
    std::uint32_t length = 0;
    std::int32_t id = kAbsent;
    std::uint32_t rest = 0;
  };

  bool holds(const Slot& slot, const char* text, std::size_t length, std::uint64_t first) const {
    return slot.first == first && slot.length == length &&
           (length <= 8 || std::memcmp(bytes_.data() + slot.rest, text + 8, length - 8) == 0);
  }
  static std::uint64_t first_bytes(const char* text, std::size_t length) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text, 8);
    return length >= 8 ? bytes : bytes & ((std::uint64_t{1} << (8 * length)) - 1);
  }
  static std::uint64_t hash(const char* text, std::size_t length, std::uint64_t first) {
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;
    std::uint64_t value = (first ^ length) * kMultiplier;
    for (std::size_t at = 8; at < length; at += 8)
      value = ((value ^ value >> 29) ^ first_bytes(text + at, length - at)) * kMultiplier;
    return (value ^ value >> 32) * kMultiplier;
  }

  std::vector<Slot> slots_;
  std::string bytes_;
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::size_t num_tokens_ = 0;
  std::size_t longest_ = 0;
};

/// `text` with bytes after it that a look-up may read.
inline std::string padded(std::string_view text) {
  std::string result(text);
  result.append(TokenTable::kPadding, '\0');
  return result;
}

}  // namespace lathe::data
