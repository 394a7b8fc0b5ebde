#include "lathe/engine/cpu/linear_weights.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::engine {
namespace {

std::int64_t whole_lines(std::int64_t floats) {
  return (floats + 15) / 16 * 16;
}

void pack_matrix(const Kernels& kernels, const float* weight, std::int64_t n, std::int64_t k,
                 AlignedBuffer& packed) {
  packed.reserve(kernels.packed_size(n, k) * static_cast<std::int64_t>(sizeof(float)));
  kernels.pack_b(weight, n, k, k, 1, packed.floats());
}

}  // namespace

void LinearWeights::pack_dense(const Kernels& kernels, std::span<const float> weight) {
  choice_.fill(LinearKernel::Dense);
  pack_matrix(kernels, weight.data(), n_, k_, dense_);
}

void LinearWeights::choose(const Kernels& kernels, std::span<const float> weight) {
  kept_ = count_kept(weight, n_, k_);
  const SparseCosts& costs = sparse_costs(*parse_isa(kernels.isa));
  const bool can_be_sparse = kept_.elements < n_ * k_ && n_ * k_ <= kMostSparseElements;
  for (std::size_t i = 0; i < choice_.size(); ++i)
    choice_[i] = can_be_sparse ? fastest_kernel(costs, kept_, static_cast<std::int64_t>(i) + 1)
                               : LinearKernel::Dense;
  speed_ = expected_time(costs, LinearKernel::Dense, kept_, kMostRows) /
           expected_time(costs, choice_.back(), kept_, kMostRows);
}

void LinearWeights::pack_chosen(const Kernels& kernels, std::span<const float> weight) {
  pack_matrix(kernels, weight.data(), n_, k_, dense_);
  for (const LinearKernel kernel : kSparseKernels)
    if (uses(kernel)) pack_one(kernel, kernels, weight);
}

void LinearWeights::pack(const Kernels& kernels, std::span<const float> weight) {
  choose(kernels, weight);
  pack_chosen(kernels, weight);
}

void LinearWeights::pack_for(LinearKernel kernel, const Kernels& kernels,
                             std::span<const float> weight) {
  pack_dense(kernels, weight);
  kept_ = count_kept(weight, n_, k_);
  choice_.fill(kernel);
  pack_one(kernel, kernels, weight);
}

void LinearWeights::pack_one(LinearKernel kernel, const Kernels& kernels,
                             std::span<const float> weight) {
  switch (kernel) {
    case LinearKernel::Dense:
      break;  // always there
    case LinearKernel::Elements:
      elements_ = SparseWeights(weight, n_, k_, 1);
      break;
    case LinearKernel::Groups:
      groups_ = SparseWeights(weight, n_, k_, kSparseGroup);
      break;
    case LinearKernel::Reduced: {
      std::vector<float> left;
      left.reserve(kept_.rows.size() * kept_.columns.size());
      for (const std::int32_t row : kept_.rows)
        for (const std::int32_t column : kept_.columns)
          left.push_back(weight[static_cast<std::size_t>(row * k_ + column)]);
      pack_matrix(kernels, left.data(), std::ssize(kept_.rows), std::ssize(kept_.columns),
                  reduced_);
      break;
    }
  }
}

bool LinearWeights::uses(LinearKernel kernel) const {
  return std::find(choice_.begin(), choice_.end(), kernel) != choice_.end();
}

LinearKernel LinearWeights::kernel(std::int64_t rows) const {
  return choice_[static_cast<std::size_t>(std::clamp<std::int64_t>(rows, 1, kMostRows) - 1)];
}

// The scratch of multiply_reduced, part behind part.
struct LinearWeights::ReducedScratch {
  ReducedScratch(const LinearWeights& weights, std::int64_t rows)
      : sums(whole_lines(rows * std::ssize(weights.kept_.columns))),
        bias(sums + whole_lines(rows * std::ssize(weights.kept_.rows))),
        others(bias + whole_lines(std::ssize(weights.kept_.rows))),
        size(others + weights.n_) {}
  std::int64_t sums, bias, others, size;
};

std::int64_t LinearWeights::scratch_floats(const Kernels& kernels, std::int64_t rows) const {
  std::int64_t floats = 0;
  if (uses(LinearKernel::Reduced)) floats = ReducedScratch(*this, rows).size;
  if (uses(LinearKernel::Groups) || uses(LinearKernel::Elements))
    floats = std::max(floats, kernels.sparse_scratch_size(k_));
  return floats;
}

void LinearWeights::multiply(const Kernels& kernels, const LinearArgs& args) const {
  LinearKernel chosen = kernel(args.rows);
  // Infinity times a zero of the weight is NaN, and only the dense kernel multiplies with zeros.
  if (chosen != LinearKernel::Dense && !kernels.is_finite(args.x, args.rows * k_))
    chosen = LinearKernel::Dense;
  if (chosen == LinearKernel::Reduced) return multiply_reduced(kernels, args);
  if (chosen == LinearKernel::Dense)
    return kernels.gemm({.rows = args.rows,
                         .n = n_,
                         .k = k_,
                         .x = args.x,
                         .x_stride = k_,
                         .packed = dense_.floats(),
                         .bias = args.bias,
                         .activation = args.activation,
                         .residual = args.residual,
                         .residual_stride = n_,
                         .y = args.y,
                         .y_stride = n_,
                         .accumulate = false});
  const SparseWeights& weights = chosen == LinearKernel::Elements ? elements_ : groups_;
  kernels.sparse_gemm({.rows = args.rows,
                       .weight = weights.matrix(),
                       .x = args.x,
                       .x_stride = k_,
                       .bias = args.bias,
                       .activation = args.activation,
                       .residual = args.residual,
                       .residual_stride = n_,
                       .y = args.y,
                       .y_stride = n_,
                       .scratch = args.scratch});
}

void LinearWeights::multiply_block(const Kernels& kernels, const LinearArgs& args,
                                   const Block& block) const {
  const std::int64_t place = block.row * n_ + block.column;
  kernels.gemm_block({.rows = block.rows,
                      .n = block.columns,
                      .k = k_,
                      .x = args.x + block.row * k_,
                      .x_stride = k_,
                      .packed = dense_.floats() + block.column * k_,
                      .bias = args.bias ? args.bias + block.column : nullptr,
                      .activation = args.activation,
                      .residual = args.residual ? args.residual + place : nullptr,
                      .residual_stride = n_,
                      .y = args.y + place,
                      .y_stride = n_,
                      .accumulate = false},
                     args.scratch);
}

void LinearWeights::multiply_reduced(const Kernels& kernels, const LinearArgs& args) const {
  const std::int64_t n = std::ssize(kept_.rows), k = std::ssize(kept_.columns);
  const bool lacks_rows = n < n_;
  const ReducedScratch parts(*this, args.rows);
  const float* x = args.x;
  const float* bias = args.bias;
  if (k < k_) {
    kernels.take_columns({.rows = args.rows,
                          .chosen = k,
                          .columns = kept_.columns.data(),
                          .x = args.x,
                          .x_stride = k_,
                          .y = args.scratch,
                          .y_stride = k});
    x = args.scratch;
  }
  if (lacks_rows && bias != nullptr) {
    kernels.take_columns({.rows = 1,
                          .chosen = n,
                          .columns = kept_.rows.data(),
                          .x = args.bias,
                          .x_stride = n_,
                          .y = args.scratch + parts.bias,
                          .y_stride = n});
    bias = args.scratch + parts.bias;
  }
  float* const sums = lacks_rows ? args.scratch + parts.sums : args.y;
  kernels.gemm({.rows = args.rows,
                .n = n,
                .k = k,
                .x = x,
                .x_stride = k,
                .packed = reduced_.floats(),
                .bias = bias,
                .activation = args.activation,
                .residual = lacks_rows ? nullptr : args.residual,
                .residual_stride = n,
                .y = sums,
                .y_stride = n,
                .accumulate = false});
  if (!lacks_rows) return;
  kernels.spread_columns({.rows = args.rows,
                          .n = n_,
                          .chosen = n,
                          .columns = kept_.rows.data(),
                          .x = sums,
                          .x_stride = n,
                          .bias = args.bias,
                          .activation = args.activation,
                          .others = args.scratch + parts.others,
                          .residual = args.residual,
                          .residual_stride = n_,
                          .y = args.y,
                          .y_stride = n_});
}

KernelChoice LinearWeights::choice() const {
  if (kept_.elements == kept_.n * kept_.k) return {};
  const LinearKernel chosen = choice_.back();
  KernelChoice choice{std::string(name(chosen)),
                      fmt::format("{:.1f} % zeros", 100 * kept_.sparsity())};
  if (chosen == LinearKernel::Dense) {
    choice.reason += ", too few to leave out";
    return choice;
  }
  if (chosen == LinearKernel::Reduced)
    choice.reason += fmt::format(", {} x {} left", kept_.rows.size(), kept_.columns.size());
  choice.reason += fmt::format(", {:.1f}x expected", speed_);
  const auto first = std::find_if(choice_.begin(), choice_.end(), [](LinearKernel kernel) {
    return kernel != LinearKernel::Dense;
  });
  if (first != choice_.begin())
    choice.reason += fmt::format(", dense below {} rows", first - choice_.begin() + 1);
  return choice;
}

}  // namespace lathe::engine
