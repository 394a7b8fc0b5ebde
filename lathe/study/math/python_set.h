#pragma once

#include <cstdint>
#include <vector>

namespace lathe::study {

/// A set of small whole numbers that is walked through in the order of CPython's `set`.
///
/// Optuna's grid sampler draws from `list(set(...) - set(...))`, so which point a draw means
/// depends on how Python lays such sets out in memory.
class PythonSet {
 public:
  PythonSet();
  /// `set(range(count))`.
  static PythonSet range(std::uint64_t count);
  void add(std::uint64_t key);
  bool contains(std::uint64_t key) const;
  std::size_t size() const { return used_; }
  /// `self - other`.
  PythonSet minus(const PythonSet& other) const;
  /// `list(self)`.
  std::vector<std::uint64_t> list() const;

 private:
  void insert(std::uint64_t key);
  void resize(std::size_t least);
  std::size_t slot_of(std::uint64_t key) const;  // where it is, or the free slot where it would go

  std::vector<std::uint64_t> table_;  // key + 1; 0: free, kRemoved: was used
  std::size_t used_ = 0;
  std::size_t filled_ = 0;  // with the removed ones
};

}  // namespace lathe::study
