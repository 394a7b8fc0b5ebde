#pragma once

#include <cstdint>

namespace lathe::study {

/// A random order of 0 ... size - 1 that is computed, not stored: where number k stands follows
/// from the key alone, however many numbers there are.
///
/// A Feistel network permutes the next larger power of four; what falls outside is sent through
/// again until it falls inside.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t size, std::uint64_t key);
  std::uint64_t size() const { return size_; }
  std::uint64_t operator()(std::uint64_t position) const;

 private:
  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace lathe::study
