#pragma once

#include <optional>
#include <vector>

#include "lathe/engine/cuda/cuda_step.h"

namespace lathe::engine {

/// Collects the products of a launch and what follows them.
class CudaProducts {
 public:
  /// A product and the slots that its launch makes so far.
  struct Entry {
    cuda::Product product = {};
    bool is_large = false;        ///< for the library, unless it has few rows
    bool may_leave_bias = false;  ///< in rows beyond the real ones
    float* sums = nullptr;        ///< room for the library's, where something follows them
    float* turned = nullptr;      ///< room for the narrower operand with its k beside each other
    int c = -1, a = -1;           ///< the slots of its result and of its first operand
  };

  void add(Entry entry) { entries_.push_back(entry); }
  /// The product that makes this slot, or that reads it as its first operand; there is one.
  Entry& maker_of(int slot);
  Entry& reader_of(int slot);

  /// Launches all of them: those of our own kernel together.
  void launch(const CudaCall& call) const;
  /// All of them, unless one is for the library.
  std::optional<std::vector<cuda::Product>> all_own(cuda::Precision precision) const;

 private:
  std::vector<Entry> entries_;
};

/// Weights from this size on have products for the library: there are tiles enough for all of a
/// GPU's multiprocessors, and nothing that follows is worth more than its speed.
inline constexpr std::int64_t kLargeWeight = std::int64_t{1} << 17;

}  // namespace lathe::engine
