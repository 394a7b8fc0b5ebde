#pragma once

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/code_kernels.h"
#include "lathe/numerics/row_codes.h"

namespace lathe::engine {

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

 private:
  const CodeKernels* kernels_ = nullptr;
  CodeCut cut_ = {};
  AlignedBuffer numbers_, scales_, sums_;
};

/// A weight of whole numbers that floats are multiplied with.
class WidenedWeight {
 public:
  void pack(const CodeKernels& kernels, const numerics::RowCodes& weight);

  const CodeKernels& kernels() const { return *kernels_; }
  /// Adds what the weight has from a column on, a multiple of a panel.
  void set_operands(WidenedArgs& args, std::int64_t column) const;

 private:
  const CodeKernels* kernels_ = nullptr;
  std::int64_t k_ = 0, blocks_ = 1, width_ = 0;
  AlignedBuffer numbers_, scales_;
};

}  // namespace lathe::engine
