#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/code_weight.h"
#include "lathe/engine/cpu/split_kernels.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/ops/code_products.h"

namespace lathe::engine {
namespace {

enum Operand : std::size_t { kX, kCodes, kLocal, kScale, kZero, kBias, kResidual };

// packed_linear of float activations: the weight stays whole numbers in memory, a quarter of its
// floats, and is widened piece by piece in the nearest caches. Large ones whose scales are powers
// of two are multiplied in parts, as their floats would be, and to the same bits; few rows never.
class PackedLinearStep final : public Step {
 public:
  PackedLinearStep(RowSpace space, std::int64_t n, std::int64_t k, std::string format,
                   Unary activation, bool may_be_split)
      : space_(std::move(space)),
        product_{space_.rows, n, k, n * k},
        format_(std::move(format)),
        activation_(activation),
        may_be_split_(may_be_split) {}

  const RowSpace* rows() const override { return &space_; }
  const Product* as_product() const override { return &product_; }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    const auto state = [&](std::size_t i) { return i < states.size() ? states[i] : nullptr; };
    const SplitKernels* const split = may_be_split_ && has_split_extents(columns(), depth())
                                          ? split_kernels(*parse_isa(kernels.isa))
                                          : nullptr;
    weight_.pack(code_kernels(*parse_isa(kernels.isa)),
                 ops::read_weight(*parse_format(format_), depth(), *states[kCodes], state(kLocal),
                                  state(kScale), state(kZero)));
    split_ = weight_.suits_split() ? split : nullptr;
  }
  std::int64_t layout_bytes() const override { return weight_.bytes(); }
  bool reads_state(std::size_t operand) const override {
    return operand < kCodes || operand > kZero;
  }
  std::int64_t scratch_bytes(const Kernels&, std::int64_t rows) const override {
    return block_scratch(rows, columns());
  }
  // How many rows there are beside these is not known.
  void run_rows(const RowCall& call) const override {
    multiply(call, {0, call.rows, 0, columns()}, false);
  }
  std::int64_t block_scratch_bytes(const Kernels&, const Block& size) const override {
    return block_scratch(size.rows, size.columns);
  }
  ProductGrain block_grain(const Kernels& kernels) const override {
    return split_ != nullptr ? split_->widened_grain() : kernels.gemm_grain();
  }
  PartitionLimits block_limits() const override {
    PartitionLimits limits = split_ != nullptr ? split_limits(false) : PartitionLimits{};
    limits.few_rows = kFewWidenedRows;
    limits.few_columns = weight_.panel();
    return limits;
  }
  void run_block(const BlockCall& call) const override {
    multiply(call, call.block, call.extents.rows <= kFewWidenedRows);
  }
  KernelChoice choice() const override {
    return {split_ != nullptr ? split_->name : weight_.kernels().name, "packed"};
  }

 private:
  std::int64_t columns() const { return space_.output_widths[0]; }
  std::int64_t depth() const { return space_.input_widths[kX]; }
  std::int64_t block_scratch(std::int64_t rows, std::int64_t n) const {
    if (split_ == nullptr) return weight_.scratch_bytes(rows, n);
    return std::max(split_->widened_scratch_bytes(rows, n),
                    weight_.scratch_bytes(std::min(rows, kFewWidenedRows), n));
  }

  void multiply(const auto& call, const Block& block, bool is_few) const {
    const auto operand = [&](std::size_t i) -> const float* {
      return i < call.inputs.size() && call.inputs[i] != nullptr ? call.input(i) : nullptr;
    };
    const std::int64_t n = columns(), place = block.row * n + block.column;
    WidenedArgs args{};
    args.rows = block.rows;
    args.n = block.columns;
    args.x = operand(kX) + block.row * depth();
    args.x_stride = depth();
    args.bias = operand(kBias) != nullptr ? operand(kBias) + block.column : nullptr;
    args.activation = activation_;
    args.residual = operand(kResidual) != nullptr ? operand(kResidual) + place : nullptr;
    args.residual_stride = n;
    args.y = call.output(0) + place;
    args.y_stride = n;
    args.scratch = call.scratch;
    args.is_few = is_few;
    weight_.set_operands(args, block.column);
    if (split_ != nullptr && !is_few)
      split_->multiply_widened(args);
    else
      weight_.kernels().multiply_widened(args);
  }

  RowSpace space_;
  Product product_;
  std::string format_;
  Unary activation_;
  bool may_be_split_;
  WidenedWeight weight_;
  const SplitKernels* split_ = nullptr;  // or null: as floats
};

std::unique_ptr<Step> make_packed_linear(const Graph& graph, NodeId id) {
  const AttributeReader attributes = graph.attribute(id);
  const std::optional<RowShape> x = row_shape(graph.type(graph.input(id, kX)));
  const std::optional<RowShape> y = row_shape(graph.types(id)[0]);
  if (!x || !y || attributes.flag("encodes")) return nullptr;
  for (std::size_t i = kCodes; i <= kZero; ++i)
    if (i < graph.inputs(id).size() && !graph.input(id, i).is_none() &&
        !graph.is(graph.input(id, i).node, "state"))
      return nullptr;
  const std::shared_ptr<const NumberFormat> format = parse_format(attributes.text("format"));
  if (!ops::fits_signed_bytes(*format)) return nullptr;
  const std::string& name = attributes.text("activation");
  const Activation* const fused = find_epilogue(name);
  if (fused == nullptr && name != "none") return nullptr;
  RowSpace space{x->rows, {x->width, 0, 0, 0, 0, 0, y->width}, {y->width}};
  space.input_widths.resize(graph.inputs(id).size());
  return std::make_unique<PackedLinearStep>(std::move(space), y->width, x->width,
                                            format->facts().text,
                                            fused != nullptr ? fused->function : Unary::None,
                                            graph.state_updates().empty() && may_be_split(graph));
}

const Register packed_linear{CpuKernel{"packed_linear", make_packed_linear}};

}  // namespace
}  // namespace lathe::engine
