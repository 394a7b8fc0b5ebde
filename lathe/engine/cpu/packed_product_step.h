#pragma once

#include <utility>

#include "lathe/engine/cpu/packed_product.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {

/// A step that is nothing but rows times a matrix of depth k with n columns, its second operand:
/// `prepare` packs it, or says how it is read.
class PackedProductStep : public Step {
 public:
  const RowSpace* rows() const override { return &space_; }
  const Product* as_product() const override { return &product_; }

  void set_precision(Precision precision) override { packed_.set_precision(precision); }
  Narrow narrow_input(std::size_t operand) const override {
    return operand == 0 ? packed_.narrow_x() : Narrow::No;
  }
  Narrow narrow_output(std::size_t) const override { return packed_.narrow_y(false); }
  void set_narrow(const std::vector<bool>& inputs, const std::vector<bool>& outputs) override {
    packed_.set_narrow(inputs[0], outputs[0]);
  }
  std::int64_t scratch_bytes(const Kernels&, std::int64_t rows) const override {
    return packed_.rows_scratch_bytes(rows);
  }
  void run_rows(const RowCall& call) const override {
    packed_.multiply_rows(call.kernels, call.rows, arguments(call));
  }
  ProductGrain block_grain(const Kernels& kernels) const override { return packed_.grain(kernels); }
  PartitionLimits block_limits() const override { return packed_.limits(); }
  std::int64_t block_scratch_bytes(const Kernels& kernels, const Block& size) const override {
    return packed_.block_scratch_bytes(kernels, size);
  }
  bool is_by_rows() const override { return packed_.is_by_rows(); }
  std::int64_t kept_bytes(std::int64_t rows) const override { return packed_.kept_bytes(rows); }
  void keep_rows(const float* x, std::int64_t rows, std::byte* to) const override {
    packed_.keep_rows(x, rows, to);
  }
  void run_block(const BlockCall& call) const override {
    PackedProductArgs args = arguments(call);
    args.kept = call.kept;
    args.next_column = call.next_column;
    packed_.multiply_block(call.kernels, call.block, args);
  }
  KernelChoice choice() const override { return packed_.choice(); }

 protected:
  PackedProductStep(RowSpace space, std::int64_t n, std::int64_t k)
      : space_(std::move(space)),
        product_{space_.rows, n, k, n * k * static_cast<std::int64_t>(sizeof(float))},
        packed_(n, k) {}
  PackedProduct& packed() { return packed_; }

 private:
  PackedProductArgs arguments(const auto& call) const {
    return {.x = call.input(0), .b = call.input(1), .y = call.output(0), .scratch = call.scratch};
  }

  RowSpace space_;
  Product product_;
  PackedProduct packed_;
};

}  // namespace lathe::engine
