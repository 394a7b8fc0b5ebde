#include "lathe/engine/cpu/packed_product.h"

namespace lathe::engine {
namespace {

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
// In bfloat16 as many rows as in float32 take half the room.
constexpr std::int64_t kMostBf16Rows = 336;
constexpr double kBf16OperandCycles = 0.25;
// Those that tiles read where they lie stay in the second-level cache with a piece of the weights,
// and so do those that a thread has rounded for all blocks of the same rows.
constexpr std::int64_t kMostKeptRows = 256;
constexpr double kRowShare = 0.5;
constexpr double kLastBlock = 0.25;
constexpr auto kNarrowBytes = static_cast<std::int64_t>(sizeof(std::uint16_t));

// Numbers from a kept row to the next: a line more than they have keeps rows apart in the sets of a
// cache.
std::int64_t kept_stride(std::int64_t k) {
  return k + Bf16Kernels::kRowGrain;
}

}  // namespace

void PackedProduct::pack(const Kernels& kernels, const float* b, std::int64_t stride_n,
                         std::int64_t stride_k) {
  if (!is_bf16_) {
    packed_.reserve(kernels.packed_size(n_, k_) * kFloatBytes);
    kernels.pack_b(b, n_, k_, stride_n, stride_k, packed_.floats());
    return;
  }
  bf16_ = &bf16_kernels(*parse_isa(kernels.isa));
  packed_.reserve(bf16_->packed_size(n_, k_) * kNarrowBytes);
  bf16_->pack(b, n_, k_, stride_n, stride_k, reinterpret_cast<std::uint16_t*>(packed_.data()));
}

void PackedProduct::pack_split(const SplitKernels& split, std::span<const float> weight) {
  split_ = &split;
  packed_.reserve(split.packed_size(n_, k_) * kFloatBytes);
  split.pack(weight.data(), n_, k_, packed_.floats());
}

void PackedProduct::read_split(const SplitKernels& split, std::int64_t stride_n,
                               std::int64_t stride_k) {
  split_ = &split;
  stride_n_ = stride_n;
  stride_k_ = stride_k;
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
  if (split_ != nullptr) return reads_b() ? lying_split_limits() : split_limits(true);
  if (!is_bf16_) return {};
  PartitionLimits limits{
      .most_rows = kMostBf16Rows, .operand_cycles = kBf16OperandCycles, .last_block = kLastBlock};
  if (!reads_rows()) return limits;
  limits.most_rows = kMostKeptRows;
  limits.keeps_tiles = true;
  limits.row_share = kRowShare;
  return limits;
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
  const auto panel = [&](std::int64_t column) {
    return reinterpret_cast<const std::uint16_t*>(packed_.data()) + bf16_->packed_size(column, k_);
  };
  const std::uint16_t* narrow_x = nullptr;
  if (args.kept != nullptr)
    narrow_x = reinterpret_cast<const std::uint16_t*>(args.kept);
  else if (has_narrow_x_)
    narrow_x = reinterpret_cast<const std::uint16_t*>(args.x) + block.row * k_;
  bf16_->multiply(
      {.rows = block.rows,
       .n = block.columns,
       .k = k_,
       .x = args.x + block.row * k_,
       .x_stride = args.kept != nullptr ? kept_stride(k_) : k_,
       .x_step = 1,
       .narrow_x = narrow_x,
       .packed = panel(block.column),
       .next_packed = args.next_column >= 0 ? panel(args.next_column) : nullptr,
       .b = nullptr,
       .b_stride = 0,
       .bias = args.bias != nullptr ? args.bias + block.column : nullptr,
       .is_rounded = true,
       .activation = args.activation,
       .residual = args.residual != nullptr ? args.residual + place : nullptr,
       .residual_stride = n_,
       .y = args.y + place,
       .y_stride = n_,
       .narrow_y = has_narrow_y_ ? reinterpret_cast<std::uint16_t*>(args.y) + place : nullptr,
       .scratch = args.scratch});
}

void PackedProduct::multiply_split(const Block& block, const PackedProductArgs& args) const {
  const std::int64_t place = block.row * n_ + block.column;
  split_->multiply(
      {.rows = block.rows,
       .n = block.columns,
       .k = k_,
       .x = args.x + block.row * k_,
       .x_stride = k_,
       .packed = reads_b() ? nullptr : packed_.floats() + split_->packed_size(block.column, k_),
       .bias = args.bias != nullptr ? args.bias + block.column : nullptr,
       .activation = args.activation,
       .residual = args.residual != nullptr ? args.residual + place : nullptr,
       .residual_stride = n_,
       .y = args.y + place,
       .y_stride = n_,
       .scratch = args.scratch,
       .parts = args.kept,
       .next_column = args.next_column < 0 ? 0 : args.next_column - block.column,
       .x_step = 1,
       .b = reads_b() ? args.b + block.column * stride_n_ : nullptr,
       .b_stride_n = stride_n_,
       .b_stride_k = stride_k_});
}

std::int64_t PackedProduct::kept_bytes(std::int64_t rows) const {
  if (split_ != nullptr) return keeps_split_rows(rows, k_) ? split_->parts_bytes(rows, k_) : 0;
  return reads_rows() && !has_narrow_x_ ? rows * kept_stride(k_) * kNarrowBytes : 0;
}

void PackedProduct::keep_rows(const float* x, std::int64_t rows, std::byte* to) const {
  if (split_ != nullptr) return split_->split_rows(x, k_, rows, k_, to);
  for (std::int64_t r = 0; r < rows; ++r)
    bf16_->narrow(x + r * k_, k_, reinterpret_cast<std::uint16_t*>(to) + r * kept_stride(k_));
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
