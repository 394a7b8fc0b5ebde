#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::data {

/// Finds the words of a set that a text begins with: a trie over bytes as a double array (Aoe
/// 1989), in which going on by a byte is one addition and one look-up. Made once, then only read.
class ByteTrie {
 public:
  /// A word and what it stands for, which is not negative. Of equal words the last counts; an empty
  /// one is left out.
  using Entry = std::pair<std::string, std::int32_t>;
  explicit ByteTrie(std::vector<Entry> entries = {});

  /// Calls `take(length, value)` for every word that the text begins with, the shortest first.
  template <typename Take>
  void find(std::string_view text, const Take& take) const {
    std::size_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::size_t child = base(node) + static_cast<unsigned char>(text[i]);
      if (units_[child].parent != static_cast<std::int32_t>(node)) return;
      node = child;
      if (units_[node].value >= 0) take(i + 1, units_[node].value);
    }
  }

 private:
  struct Unit {
    std::int32_t base = 0;     // where its children begin
    std::int32_t parent = -1;  // -1: free
    std::int32_t value = -1;   // -1: no word ends here
  };
  struct Range {
    std::size_t node, begin, end, depth;
  };

  std::size_t base(std::size_t node) const { return static_cast<std::size_t>(units_[node].base); }
  void place(const std::vector<Entry>& entries, const Range& range, std::vector<Range>& waiting);
  std::size_t find_room(const std::vector<unsigned char>& bytes);

  std::vector<Unit> units_;
  std::size_t first_free_ = 1;
  std::size_t end_ = 1;  // behind the last unit in use
};

}  // namespace lathe::data
