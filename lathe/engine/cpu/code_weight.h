#pragma once

#include <cstdint>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/code_kernels.h"
#include "lathe/numerics/row_codes.h"

namespace lathe::engine {

/// The scales of a weight, panel after panel, in each a line of its columns for every block of the
/// depth. Where they are powers of two they are kept as their exponents, a quarter of the bytes;
/// where they are bfloat16 numbers, and whoever reads them knows those, as such.
class PanelScales {
 public:
  void pack(const numerics::RowCodes& weight, std::int64_t panel, bool may_be_short = false);

  std::int64_t bytes() const { return memory_.size(); }
  /// From a column on, a multiple of a panel; null if they are powers or short.
  const float* floats(std::int64_t column) const;
  /// The same as bfloat16 numbers; null unless they are.
  const std::uint16_t* shorts(std::int64_t column) const;
  /// The same as exponents with an offset of 127; null unless they are powers.
  const std::uint8_t* powers(std::int64_t column) const;
  /// The largest of these; 0 unless they are powers.
  std::uint8_t largest_power() const { return largest_power_; }

 private:
  std::int64_t blocks_ = 1;
  bool are_powers_ = false, are_short_ = false;
  std::uint8_t largest_power_ = 0;
  AlignedBuffer memory_;
};

/// A weight of whole numbers, packed for one way to multiply.
class CodeWeight {
 public:
  /// `has_zeros`: whether what it is multiplied with has zero points.
  void pack(const CodeKernels& kernels, const numerics::RowCodes& weight, const CodeCut& cut,
            bool has_zeros);

  const CodeKernels& kernels() const { return *kernels_; }
  const CodeCut& cut() const { return cut_; }
  /// Adds what the weight has from a column on, a multiple of a panel.
  void set_operands(CodeArgs& args, std::int64_t column) const;
  std::int64_t bytes() const { return numbers_.size() + scales_.bytes() + sums_.size(); }

 private:
  const CodeKernels* kernels_ = nullptr;
  CodeCut cut_ = {};
  AlignedBuffer numbers_, sums_;
  PanelScales scales_;
};

/// A weight of whole numbers that floats are multiplied with.
class WidenedWeight {
 public:
  void pack(const CodeKernels& kernels, const numerics::RowCodes& weight);

  const CodeKernels& kernels() const { return *kernels_; }
  /// Whether its numbers are bfloat16 numbers below kMostSplitWeight as they are.
  bool suits_split() const;
  std::int64_t scratch_bytes(std::int64_t rows, std::int64_t columns) const {
    return kernels_->widened_scratch_bytes(rows, columns, k_, width_);
  }
  /// Columns of a panel: those that few rows can be cut by.
  std::int64_t panel() const {
    return step_ > 1 ? kernels_->widened_columns : kernels_->grain().columns;
  }
  /// Adds what the weight has from a column on, a multiple of a panel.
  void set_operands(WidenedArgs& args, std::int64_t column) const;
  std::int64_t bytes() const { return numbers_.size() + scales_.bytes(); }

 private:
  const CodeKernels* kernels_ = nullptr;
  std::int64_t k_ = 0, width_ = 0, step_ = 1;
  bool has_nibbles_ = false;
  AlignedBuffer numbers_;
  PanelScales scales_;
};

}  // namespace lathe::engine
