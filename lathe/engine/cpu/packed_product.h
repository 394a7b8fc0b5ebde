#pragma once

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/bf16_kernels.h"
#include "lathe/engine/cpu/product_partition.h"
#include "lathe/engine/cpu/split_kernels.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {

/// y[rows, n] = activation(x[rows, k] . B[k, n] + bias[n]) + residual[rows, n], with operands in
/// whole: rows lie side by side.
struct PackedProductArgs {
  const float* x = nullptr;     ///< or bfloat16 numbers, if `set_narrow` said so; and so may y be
  const float* b = nullptr;     ///< where it lies, for products that read it there
  const float* bias = nullptr;  ///< or null
  Unary activation = Unary::None;
  const float* residual = nullptr;  ///< or null; may be y itself
  float* y = nullptr;
  std::byte* scratch = nullptr;     ///< as much as is asked for below, on a cache line
  const std::byte* kept = nullptr;  ///< what `keep_rows` made of the block's rows, or null
  std::int64_t next_column = -1;    ///< to be asked for, or -1
};

/// A product with a matrix that is packed ahead, in float32, in bfloat16 or as floats in parts
/// (split_table.h), or that is read in parts where it lies, for steps to run by rows and by blocks.
/// What they override asks it.
class PackedProduct {
 public:
  PackedProduct(std::int64_t n, std::int64_t k) : n_(n), k_(k) {}

  void set_precision(Precision precision) { is_bf16_ = precision == Precision::Bf16; }
  bool is_bf16() const { return is_bf16_; }
  /// Whether x and y may lie as bfloat16 numbers: what stands behind the product may change them.
  Narrow narrow_x() const { return is_bf16_ ? Narrow::Anyway : Narrow::No; }
  Narrow narrow_y(bool is_changed) const {
    return !is_bf16_ ? Narrow::No : is_changed ? Narrow::Can : Narrow::Anyway;
  }
  void set_narrow(bool x, bool y) {
    has_narrow_x_ = x;
    has_narrow_y_ = y;
  }
  /// Packs B whose element [p, j] is b[j * stride_n + p * stride_k], one of both 1. Nothing below
  /// may be called before.
  void pack(const Kernels& kernels, const float* b, std::int64_t stride_n, std::int64_t stride_k);
  /// Packs a weight [n, k] that suits it in parts, instead.
  void pack_split(const SplitKernels& split, std::span<const float> weight);
  /// Packs nothing: B is read in parts where it lies, which is as it would be packed from.
  void read_split(const SplitKernels& split, std::int64_t stride_n, std::int64_t stride_k);
  bool is_split() const { return split_ != nullptr; }
  bool reads_b() const { return is_split() && stride_k_ != 0; }
  /// Lets go of what is packed.
  void clear();

  std::int64_t bytes() const { return packed_.size(); }
  ProductGrain grain(const Kernels& kernels) const;
  PartitionLimits limits() const;
  std::int64_t rows_scratch_bytes(std::int64_t rows) const;
  std::int64_t block_scratch_bytes(const Kernels& kernels, const Block& size) const;
  /// Whether blocks of the same rows are best taken one behind another, as in Step.
  bool is_by_rows() const { return split_ != nullptr || reads_rows(); }
  /// The rows of a product in parts or in bfloat16, as in Step.
  std::int64_t kept_bytes(std::int64_t rows) const;
  void keep_rows(const float* x, std::int64_t rows, std::byte* to) const;
  /// The first rows, read and written while they are near.
  void multiply_rows(const Kernels& kernels, std::int64_t rows,
                     const PackedProductArgs& args) const;
  void multiply_block(const Kernels& kernels, const Block& block,
                      const PackedProductArgs& args) const;
  /// Empty where floats are multiplied whole.
  KernelChoice choice() const;

 private:
  GemmArgs float_block(const Block& block, const PackedProductArgs& args) const;
  void multiply_bf16(const Block& block, const PackedProductArgs& args) const;
  void multiply_split(const Block& block, const PackedProductArgs& args) const;
  bool reads_rows() const {
    return is_bf16_ && bf16_->reads_rows && k_ % Bf16Kernels::kRowGrain == 0;
  }

  std::int64_t n_, k_;
  bool is_bf16_ = false, has_narrow_x_ = false, has_narrow_y_ = false;
  const Bf16Kernels* bf16_ = nullptr;
  const SplitKernels* split_ = nullptr;
  std::int64_t stride_n_ = 0, stride_k_ = 0;  // of a matrix that is read where it lies
  AlignedBuffer packed_;
};

}  // namespace lathe::engine
