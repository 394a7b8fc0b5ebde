#include "lathe/data/byte_trie.h"

#include <algorithm>

namespace lathe::data {
namespace {

// Parts that are nearly full are not searched for ever.
constexpr std::size_t kMostTries = 1024;

}  // namespace

ByteTrie::ByteTrie(std::vector<Entry> entries) : units_(1 + 256) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  units_[0].parent = 0;
  // By breadth, since words may be as long as a file: nothing recurses.
  std::vector<Range> waiting = {{0, 0, entries.size(), 0}};
  for (std::size_t next = 0; next < waiting.size(); ++next)
    place(entries, Range(waiting[next]), waiting);
}

// Gives the words of a range, which agree in their first `depth` bytes, their nodes for the next.
void ByteTrie::place(const std::vector<Entry>& entries, const Range& range,
                     std::vector<Range>& waiting) {
  std::size_t begin = range.begin;
  while (begin < range.end && entries[begin].first.size() == range.depth) {
    if (range.depth > 0) units_[range.node].value = entries[begin].second;
    ++begin;
  }
  std::vector<unsigned char> bytes;
  std::vector<std::size_t> begins;
  for (std::size_t i = begin; i < range.end; ++i) {
    const auto byte = static_cast<unsigned char>(entries[i].first[range.depth]);
    if (!bytes.empty() && bytes.back() == byte) continue;
    bytes.push_back(byte);
    begins.push_back(i);
  }
  begins.push_back(range.end);
  if (bytes.empty()) return;
  const std::size_t base = find_room(bytes);
  units_[range.node].base = static_cast<std::int32_t>(base);
  for (const unsigned char byte : bytes)
    units_[base + byte].parent = static_cast<std::int32_t>(range.node);
  end_ = std::max(end_, base + bytes.back() + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    waiting.push_back({base + bytes[i], begins[i], begins[i + 1], range.depth + 1});
}

// The first place where all the children of a node find a free unit. Every child may be asked for,
// so that 256 units follow every base.
std::size_t ByteTrie::find_room(const std::vector<unsigned char>& bytes) {
  while (first_free_ < units_.size() && units_[first_free_].parent != -1) ++first_free_;
  const std::size_t least = std::max<std::size_t>(first_free_, bytes[0] + std::size_t{1});
  for (std::size_t first = least, tries = 0;; ++first, ++tries) {
    if (tries == kMostTries) {
      first_free_ = first;  // the holes before it are given up
      first = std::max(first, end_);
    }
    const std::size_t base = first - bytes[0];
    if (base + 256 > units_.size()) units_.resize(std::max(base + 256, units_.size() * 5 / 4));
    if (std::all_of(bytes.begin(), bytes.end(),
                    [&](unsigned char byte) { return units_[base + byte].parent == -1; }))
      return base;
  }
}

}  // namespace lathe::data
