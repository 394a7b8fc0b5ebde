#include "lathe/core/number_format.h"
#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/code_weight.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/integer_rows.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/ops/code_products.h"

namespace lathe::engine {
namespace {

constexpr std::size_t kResidual = ops::kNumCodeOperands;
// As many rows as stay in the second-level cache.
constexpr std::int64_t kMostCodeRows = 504;
constexpr double kCodeOperandCycles = 0.125;
constexpr double kLastBlock = 0.25;

// code_linear and fused_code_linear: products of bytes with a weight that is packed ahead.
class CodeLinearStep final : public Step {
 public:
  CodeLinearStep(RowSpace space, std::int64_t n, CodeCut cut, std::string format, bool has_zeros,
                 Unary activation)
      : space_(std::move(space)),
        product_{space_.rows, n, cut.k, n * cut.k},
        cut_(cut),
        format_(std::move(format)),
        has_zeros_(has_zeros),
        activation_(activation) {}

  const RowSpace* rows() const override { return &space_; }
  const Product* as_product() const override { return &product_; }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    const auto state = [&](std::size_t i) { return i < states.size() ? states[i] : nullptr; };
    weight_.pack(code_kernels(*parse_isa(kernels.isa)),
                 ops::read_weight(*parse_format(format_), cut_.k, *states[ops::kWeightCodes],
                                  state(ops::kWeightLocal), state(ops::kWeightScale),
                                  state(ops::kWeightZero)),
                 cut_, has_zeros_);
  }

  std::int64_t layout_bytes() const override { return weight_.bytes(); }
  bool reads_state(std::size_t operand) const override {
    return operand < ops::kWeightCodes || operand > ops::kWeightZero;
  }
  std::int64_t scratch_bytes(const Kernels&, std::int64_t rows) const override {
    return weight_.kernels().scratch_bytes(rows, weight_.cut());
  }
  void run_rows(const RowCall& call) const override {
    multiply(call, {0, call.rows, 0, columns()});
  }

  ProductGrain block_grain(const Kernels&) const override { return weight_.kernels().grain(); }
  PartitionLimits block_limits() const override {
    return {
        .most_rows = kMostCodeRows, .operand_cycles = kCodeOperandCycles, .last_block = kLastBlock};
  }
  std::int64_t block_scratch_bytes(const Kernels& kernels, const Block& size) const override {
    return scratch_bytes(kernels, size.rows);
  }
  void run_block(const BlockCall& call) const override { multiply(call, call.block); }

  KernelChoice choice() const override { return {weight_.kernels().name, "codes"}; }

 private:
  std::int64_t columns() const { return space_.output_widths[0]; }

  void multiply(const auto& call, const Block& block) const {
    const auto operand = [&](std::size_t i) {
      return i < call.inputs.size() ? call.inputs[i] : nullptr;
    };
    const std::int64_t n = columns(), place = block.row * n + block.column;
    const std::int64_t scales = block.row * space_.input_widths[ops::kXScales];
    const auto* const bias = reinterpret_cast<const float*>(operand(ops::kCodeBias));
    const auto* const residual = reinterpret_cast<const float*>(operand(kResidual));
    CodeArgs args{};
    args.rows = block.rows;
    args.n = block.columns;
    args.x = reinterpret_cast<const std::int8_t*>(operand(ops::kXNumbers)) + block.row * cut_.k;
    args.x_stride = cut_.k;
    args.x_scales = reinterpret_cast<const float*>(operand(ops::kXScales)) + scales;
    if (has_zeros_)
      args.x_zeros = reinterpret_cast<const std::int32_t*>(operand(ops::kXZeros)) + scales;
    args.bias = bias != nullptr ? bias + block.column : nullptr;
    args.activation = activation_;
    args.residual = residual != nullptr ? residual + place : nullptr;
    args.residual_stride = n;
    args.y = call.output(0) + place;
    args.y_stride = n;
    args.scratch = call.scratch;
    weight_.set_operands(args, block.column);
    weight_.kernels().multiply(args);
  }

  RowSpace space_;
  Product product_;
  CodeCut cut_;
  std::string format_;
  bool has_zeros_;
  Unary activation_;
  CodeWeight weight_;
};

// What one instruction multiplies: blocks of a number that is no multiple would share one.
constexpr std::int64_t kBlockGrain = 4;

std::unique_ptr<Step> make_code_linear(const Graph& graph, NodeId id) {
  const AttributeReader attributes = graph.attribute(id);
  const std::optional<IntegerRows> x = integer_rows(graph.type(graph.input(id, ops::kXNumbers)));
  const std::optional<RowShape> y = row_shape(graph.types(id)[0]);
  if (!x || !y) return nullptr;
  // A weight computed by the graph would have to be packed on every run.
  for (std::size_t i = ops::kWeightCodes; i <= ops::kWeightZero; ++i)
    if (i < graph.inputs(id).size() && !graph.input(id, i).is_none() &&
        !graph.is(graph.input(id, i).node, "state"))
      return nullptr;
  const std::shared_ptr<const NumberFormat> x_format = parse_format(attributes.text("x_format"));
  const std::shared_ptr<const NumberFormat> format = parse_format(attributes.text("format"));
  const std::optional<ops::CodeBlocks> blocks =
      ops::code_blocks(x_format->facts(), format->facts(), x->width);
  if (!blocks || (blocks->blocks > 1 && blocks->width % kBlockGrain != 0)) return nullptr;
  Unary activation = Unary::None;
  if (graph.is(id, "fused_code_linear")) {
    const std::string& name = attributes.text("activation");
    const Activation* const fused = find_epilogue(name);
    if (fused == nullptr && name != "none") return nullptr;
    if (fused != nullptr) activation = fused->function;
  }
  const std::int64_t scales = numerics::blocks_of_row(x_format->facts(), x->width);
  RowSpace space{y->rows, {x->width, scales, scales, 0, 0, 0, 0, 0, y->width}, {y->width}};
  space.input_widths.resize(graph.inputs(id).size());
  return std::make_unique<CodeLinearStep>(
      std::move(space), y->width,
      CodeCut{x->width, blocks->blocks, blocks->width, blocks->x_has_blocks,
              blocks->weight_has_blocks, false},
      format->facts().text, numerics::code_layout(*x_format) == numerics::CodeLayout::Unsigned,
      activation);
}

const Register code_linear{CpuKernel{"code_linear", make_code_linear}};
const Register fused_code_linear{CpuKernel{"fused_code_linear", make_code_linear}};

}  // namespace
}  // namespace lathe::engine
