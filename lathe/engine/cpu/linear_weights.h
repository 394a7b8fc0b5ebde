#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/kernels.h"
#include "lathe/engine/cpu/product_partition.h"
#include "lathe/engine/cpu/sparse_costs.h"
#include "lathe/engine/cpu/sparse_weights.h"
#include "lathe/engine/plan_report.h"

namespace lathe::engine {

/// y[rows, n] = activation(x[rows, k] . weight^T + bias[n]) + residual[rows, n]; rows lie side by
/// side.
struct LinearArgs {
  std::int64_t rows = 0;
  const float* x = nullptr;
  const float* bias = nullptr;  ///< or null
  Unary activation = Unary::None;
  const float* residual = nullptr;  ///< or null; may be y itself
  float* y = nullptr;
  float* scratch = nullptr;  ///< scratch_floats(rows) on a cache line
};

/// The weight [n, k] of a linear layer, packed for the kernels that multiply with it. Every one of
/// them gives the same bits, and rows that are not finite are always multiplied densely.
class LinearWeights {
 public:
  LinearWeights(std::int64_t n, std::int64_t k) : n_(n), k_(k) {}

  /// Packs for the dense kernel alone.
  void pack_dense(const Kernels& kernels, std::span<const float> weight);
  /// Looks where the zeros are and chooses the kernels that are fastest for some number of rows.
  void choose(const Kernels& kernels, std::span<const float> weight);
  /// How many times as fast as the dense kernel the one that was chosen for many rows is expected
  /// to be.
  double speed() const { return speed_; }
  /// Packs for what was chosen.
  void pack_chosen(const Kernels& kernels, std::span<const float> weight);
  /// Both.
  void pack(const Kernels& kernels, std::span<const float> weight);
  /// Packs for one kernel, whatever it costs.
  void pack_for(LinearKernel kernel, const Kernels& kernels, std::span<const float> weight);

  /// Of all that is packed, the zeros that are left out not counted.
  std::int64_t bytes() const {
    return dense_.size() + reduced_.size() + elements_.bytes() + groups_.bytes();
  }
  /// What so many rows are multiplied by.
  LinearKernel kernel(std::int64_t rows) const;
  std::int64_t scratch_floats(const Kernels& kernels, std::int64_t rows) const;
  void multiply(const Kernels& kernels, const LinearArgs& args) const;

  /// Whether many rows are multiplied by a kernel that leaves zeros out, and so computes all
  /// columns.
  bool is_sparse() const { return choice_.back() != LinearKernel::Dense; }
  /// One block of the product densely; operands are whole.
  void multiply_block(const Kernels& kernels, const LinearArgs& args, const Block& block) const;

  /// Which kernel was chosen for many rows and why; empty where no weight is zero or nobody looked.
  KernelChoice choice() const;

 private:
  // Beyond so many rows the choice is that for so many.
  static constexpr std::int64_t kMostRows = 64;

  struct ReducedScratch;
  bool uses(LinearKernel kernel) const;
  void pack_one(LinearKernel kernel, const Kernels& kernels, std::span<const float> weight);
  void multiply_reduced(const Kernels& kernels, const LinearArgs& args) const;

  std::int64_t n_, k_;
  std::array<LinearKernel, kMostRows> choice_{};  // for 1, 2, ... rows
  KeptWeights kept_;
  double speed_ = 1;  // of the choice for kMostRows, in dense ones, by the rule
  AlignedBuffer dense_, reduced_;
  SparseWeights elements_, groups_;
};

}  // namespace lathe::engine
