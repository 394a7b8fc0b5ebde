#pragma once

#include <utility>

#include "lathe/engine/cpu/packed_product.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {

/// A step that is nothing but rows times a packed matrix of depth k with n columns: `prepare` packs
/// it.
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
    has_narrow_x_ = inputs[0];
    has_narrow_y_ = outputs[0];
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
  void run_block(const BlockCall& call) const override {
    packed_.multiply_block(call.kernels, call.block, arguments(call));
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
    return {.x = call.input(0),
            .narrow_x = has_narrow_x_ ? call.narrow_input(0) : nullptr,
            .y = call.output(0),
            .narrow_y = has_narrow_y_ ? call.narrow_output(0) : nullptr,
            .scratch = call.scratch};
  }

  RowSpace space_;
  Product product_;
  PackedProduct packed_;
  bool has_narrow_x_ = false, has_narrow_y_ = false;
};

}  // namespace lathe::engine
