#include "lathe/study/math/python_set.h"

namespace lathe::study {

namespace {

constexpr std::size_t kLeastSize = 8;
constexpr std::size_t kLinearProbes = 9;
constexpr std::uint64_t kRemoved = ~std::uint64_t{0};

}  // namespace

PythonSet::PythonSet() : table_(kLeastSize, 0) {}

PythonSet PythonSet::range(std::uint64_t count) {
  PythonSet set;
  for (std::uint64_t i = 0; i < count; ++i) set.add(i);
  return set;
}

// A number's hash is the number. From its slot a few neighbours are tried, as far as the table
// goes; then a far one, mixed from the hash's higher bits.
std::size_t PythonSet::slot_of(std::uint64_t key) const {
  const std::size_t mask = table_.size() - 1;
  std::uint64_t perturb = key;
  std::size_t start = key & mask;
  for (;;) {
    const std::size_t probes = start + kLinearProbes <= mask ? kLinearProbes : 0;
    for (std::size_t slot = start; slot <= start + probes; ++slot)
      if (table_[slot] == 0 || table_[slot] == key + 1) return slot;
    perturb >>= 5;
    start = (start * 5 + 1 + perturb) & mask;
  }
}

void PythonSet::insert(std::uint64_t key) {
  const std::size_t slot = slot_of(key);
  if (table_[slot] != 0) return;
  table_[slot] = key + 1;
  ++used_;
  ++filled_;
}

void PythonSet::add(std::uint64_t key) {
  const std::size_t before = used_;
  insert(key);
  if (used_ == before || filled_ * 5 < (table_.size() - 1) * 3) return;
  resize(used_ > 50000 ? used_ * 2 : used_ * 4);
}

void PythonSet::resize(std::size_t least) {
  std::size_t size = kLeastSize;
  while (size <= least) size *= 2;
  const std::vector<std::uint64_t> keys = list();
  table_.assign(size, 0);
  used_ = filled_ = 0;
  for (const std::uint64_t key : keys) insert(key);
}

bool PythonSet::contains(std::uint64_t key) const {
  return table_[slot_of(key)] != 0;
}

std::vector<std::uint64_t> PythonSet::list() const {
  std::vector<std::uint64_t> keys;
  for (const std::uint64_t entry : table_)
    if (entry != 0 && entry != kRemoved) keys.push_back(entry - 1);
  return keys;
}

PythonSet PythonSet::minus(const PythonSet& other) const {
  PythonSet result;
  if (used_ / 4 > other.used_) {
    // Little is taken away: a copy with gaps.
    if ((result.filled_ + used_) * 5 >= (result.table_.size() - 1) * 3) result.resize(used_ * 2);
    if (result.table_.size() == table_.size() && filled_ == used_) {
      result = *this;
    } else {
      for (const std::uint64_t key : list()) result.insert(key);
    }
    for (const std::uint64_t key : other.list()) {
      const std::size_t slot = result.slot_of(key);
      if (result.table_[slot] != key + 1) continue;
      result.table_[slot] = kRemoved;
      --result.used_;
    }
    return result;
  }
  for (const std::uint64_t key : list())
    if (!other.contains(key)) result.add(key);
  return result;
}

}  // namespace lathe::study
