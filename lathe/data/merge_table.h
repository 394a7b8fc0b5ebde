#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace lathe::data {

/// What a pair of neighbouring tokens becomes: made once, then only read.
class MergeTable {
 public:
  struct Merge {
    std::int32_t rank = -1;  ///< lower merges first; -1: this pair does not merge
    std::int32_t id = -1;
  };

  explicit MergeTable(std::size_t num_merges = 0)
      : shift_(64 - std::bit_width(num_merges * 2 + 1)), slots_(std::size_t{1} << (64 - shift_)) {}

  /// A pair given twice keeps its last merge. No more pairs than the table was made for.
  void insert(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[slot_of(left, right)];
    slot = {left, right, merge};
  }
  Merge find(std::int32_t left, std::int32_t right) const {
    return slots_[slot_of(left, right)].merge;
  }

 private:
  struct Slot {
    std::int32_t left = -1;
    std::int32_t right = -1;
    Merge merge;
  };

  // Where the pair is, or the free slot where it would be.
  std::size_t slot_of(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    std::size_t slot = key * 0x9E3779B97F4A7C15 >> shift_;
    while (slots_[slot].left != -1 && (slots_[slot].left != left || slots_[slot].right != right))
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  int shift_;
  std::vector<Slot> slots_;
};

}  // namespace lathe::data
