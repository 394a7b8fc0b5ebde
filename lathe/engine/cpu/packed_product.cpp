#include "lathe/engine/cpu/packed_product.h"

namespace lathe::engine {
namespace {

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
// In bfloat16 as many rows as in float32 take half the room.
constexpr std::int64_t kMostBf16Rows = 336;
constexpr double kBf16OperandCycles = 0.25;
constexpr double kLastBlock = 0.25;

}  // namespace

void PackedProduct::pack(const Kernels& kernels, const float* b, std::int64_t stride_n,
                         std::int64_t stride_k) {
  if (!is_bf16_) {
    packed_.reserve(kernels.packed_size(n_, k_) * kFloatBytes);
    kernels.pack_b(b, n_, k_, stride_n, stride_k, packed_.floats());
    return;
  }
  bf16_ = &bf16_kernels(*parse_isa(kernels.isa));
  packed_.reserve(bf16_->packed_size(n_, k_) * static_cast<std::int64_t>(sizeof(std::uint16_t)));
  bf16_->pack(b, n_, k_, stride_n, stride_k, reinterpret_cast<std::uint16_t*>(packed_.data()));
}

void PackedProduct::pack_split(const SplitKernels& split, std::span<const float> weight) {
  split_ = &split;
  packed_.reserve(split.packed_size(n_, k_) * kFloatBytes);
  split.pack(weight.data(), n_, k_, packed_.floats());
}

void PackedProduct::clear() {
  split_ = nullptr;
  packed_ = {};
}

ProductGrain PackedProduct::grain(const Kernels& kernels) const {
  if (split_ != nullptr) return split_->grain();
  return is_bf16_ ? bf16_->grain() : kernels.gemm_grain();
}

PartitionLimits PackedProduct::limits() const {
  if (split_ != nullptr) return split_limits(true);
  if (!is_bf16_) return {};
  return {
      .most_rows = kMostBf16Rows, .operand_cycles = kBf16OperandCycles, .last_block = kLastBlock};
}

std::int64_t PackedProduct::rows_scratch_bytes(std::int64_t rows) const {
  if (split_ != nullptr) return split_->scratch_bytes(rows, n_);
  return is_bf16_ ? bf16_->scratch_bytes(rows, n_) : 0;
}

std::int64_t PackedProduct::block_scratch_bytes(const Kernels& kernels, const Block& size) const {
  if (split_ != nullptr) return split_->scratch_bytes(size.rows, size.columns);
  return is_bf16_ ? bf16_->scratch_bytes(size.rows, size.columns)
                  : kernels.gemm_block_scratch(size.rows, size.columns) * kFloatBytes;
}

GemmArgs PackedProduct::float_block(const Block& block, const PackedProductArgs& args) const {
  const std::int64_t place = block.row * n_ + block.column;
  return {.rows = block.rows,
          .n = block.columns,
          .k = k_,
          .x = args.x + block.row * k_,
          .x_stride = k_,
          .packed = packed_.floats() + block.column * k_,
          .bias = args.bias != nullptr ? args.bias + block.column : nullptr,
          .activation = args.activation,
          .residual = args.residual != nullptr ? args.residual + place : nullptr,
          .residual_stride = n_,
          .y = args.y + place,
          .y_stride = n_,
          .accumulate = false};
}

void PackedProduct::multiply_bf16(const Block& block, const PackedProductArgs& args) const {
  const std::int64_t place = block.row * n_ + block.column;
  bf16_->multiply({.rows = block.rows,
                   .n = block.columns,
                   .k = k_,
                   .x = args.x + block.row * k_,
                   .x_stride = k_,
                   .x_step = 1,
                   .narrow_x = args.narrow_x != nullptr ? args.narrow_x + block.row * k_ : nullptr,
                   .packed = reinterpret_cast<const std::uint16_t*>(packed_.data()) +
                             bf16_->packed_size(block.column, k_),
                   .b = nullptr,
                   .b_stride = 0,
                   .bias = args.bias != nullptr ? args.bias + block.column : nullptr,
                   .is_rounded = true,
                   .activation = args.activation,
                   .residual = args.residual != nullptr ? args.residual + place : nullptr,
                   .residual_stride = n_,
                   .y = args.y + place,
                   .y_stride = n_,
                   .narrow_y = args.narrow_y != nullptr ? args.narrow_y + place : nullptr,
                   .scratch = args.scratch});
}

void PackedProduct::multiply_split(const Block& block, const PackedProductArgs& args) const {
  const std::int64_t place = block.row * n_ + block.column;
  split_->multiply({.rows = block.rows,
                    .n = block.columns,
                    .k = k_,
                    .x = args.x + block.row * k_,
                    .x_stride = k_,
                    .packed = packed_.floats() + split_->packed_size(block.column, k_),
                    .bias = args.bias != nullptr ? args.bias + block.column : nullptr,
                    .activation = args.activation,
                    .residual = args.residual != nullptr ? args.residual + place : nullptr,
                    .residual_stride = n_,
                    .y = args.y + place,
                    .y_stride = n_,
                    .scratch = args.scratch,
                    .parts = args.kept,
                    .next_column = args.next_column < 0 ? 0 : args.next_column - block.column});
}

std::int64_t PackedProduct::kept_bytes(std::int64_t rows) const {
  return split_ != nullptr ? split_->parts_bytes(rows, k_) : 0;
}

void PackedProduct::keep_rows(const float* x, std::int64_t rows, std::byte* to) const {
  split_->split_rows(x, k_, rows, k_, to);
}

void PackedProduct::multiply_rows(const Kernels& kernels, std::int64_t rows,
                                  const PackedProductArgs& args) const {
  const Block all{0, rows, 0, n_};
  if (split_ != nullptr)
    multiply_split(all, args);
  else if (is_bf16_)
    multiply_bf16(all, args);
  else
    kernels.gemm(float_block(all, args));
}

void PackedProduct::multiply_block(const Kernels& kernels, const Block& block,
                                   const PackedProductArgs& args) const {
  if (split_ != nullptr)
    multiply_split(block, args);
  else if (is_bf16_)
    multiply_bf16(block, args);
  else
    kernels.gemm_block(float_block(block, args), reinterpret_cast<float*>(args.scratch));
}

KernelChoice PackedProduct::choice() const {
  if (split_ != nullptr) return {split_->name, "floats in three parts"};
  return is_bf16_ ? KernelChoice{bf16_->name, "bf16"} : KernelChoice{};
}

}  // namespace lathe::engine
