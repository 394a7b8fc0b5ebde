#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

struct CountedWord {
  std::string word;
  std::int64_t count = 0;
  bool operator==(const CountedWord&) const = default;
};

/// Counts words: a growing table of their bytes, so that adding one that is known allocates
/// nothing.
class WordCounts {
 public:
  void add(std::string_view word, std::int64_t count = 1);
  void add(const WordCounts& others);
  /// Every word, in the order of their bytes.
  std::vector<CountedWord> sorted() const;

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::int64_t count = 0;  // 0: empty
    std::size_t begin = 0, length = 0;
  };

  std::string_view word_of(const Slot& slot) const {
    return std::string_view(bytes_).substr(slot.begin, slot.length);
  }
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(1 << 10);
  std::string bytes_;
  std::size_t num_words_ = 0;
};

}  // namespace lathe::data
