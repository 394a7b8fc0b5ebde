#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/packed_product_step.h"

namespace lathe::engine {
namespace {

// The gradients of row-wise ops. What flows back to a row's operand is a row again; what a
// parameter receives is a sum over rows, which the plan adds up group by group.

class LinearInputGradientStep final : public PackedProductStep {
 public:
  LinearInputGradientStep(RowSpace space, std::int64_t n, std::int64_t k)
      : PackedProductStep(std::move(space), k, n), n_(n), k_(k) {}
  // dx = dy . W is a product whose second operand is the weight as it lies: [n, k].
  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    const SplitKernels* const split = split_kernels(*parse_isa(kernels.isa));
    if (!packed().is_bf16() && split != nullptr && has_split_extents(k_, n_))
      return packed().read_split(*split, 1, k_);
    packed().pack(kernels, states[1]->data<float>().data(), 1, k_);
  }

 private:
  std::int64_t n_, k_;
};

class LinearWeightGradientStep final : public Step {
  // In bfloat16 both operands are rounded and packed for each block, and in parts they are split.
  static constexpr double kPackCycles = 2;
  static constexpr std::int64_t kMostSplitRows = 256;
  // As much as a second-level cache has: it is not there any more when the optimizer reads it.
  static constexpr std::int64_t kStreamedBytes = std::int64_t{2} << 20;

 public:
  explicit LinearWeightGradientStep(RowSpace space)
      : space_(std::move(space)),
        n_(space_.input_widths[0]),
        k_(space_.input_widths[1]),
        product_{n_, k_, space_.rows, n_ * k_ * static_cast<std::int64_t>(sizeof(float))} {}
  const RowSpace* rows() const override { return &space_; }
  void set_precision(Precision precision) override { is_bf16_ = precision == Precision::Bf16; }
  Narrow narrow_input(std::size_t) const override { return is_bf16_ ? Narrow::Anyway : Narrow::No; }
  void set_narrow(const std::vector<bool>& inputs, const std::vector<bool>&) override {
    has_narrow_dy_ = inputs[0];
    has_narrow_x_ = inputs[1];
  }
  void prepare(const Kernels& kernels, std::span<const Tensor* const>) override {
    bf16_ = &bf16_kernels(*parse_isa(kernels.isa));
    if (!is_bf16_ && has_split_size(n_, k_)) split_ = split_kernels(*parse_isa(kernels.isa));
  }
  std::int64_t scratch_bytes(const Kernels&, std::int64_t) const override {
    return is_bf16_ ? bf16_->scratch_bytes(n_, k_) : 0;
  }
  void run_rows(const RowCall& call) const override {
    const Block all{0, n_, 0, k_};
    if (is_bf16_) return multiply_bf16(call, call.rows, all, true);
    call.kernels.weight_gradient(block_of(call, call.rows, all, true));
  }

  // Each of the weight's elements is one sum over all rows: threads share the weight, not the rows.
  const Product* as_product() const override { return &product_; }
  PartitionLimits block_limits() const override {
    return {.most_rows = split_ != nullptr ? kMostSplitRows : 448,
            .operand_cycles = is_bf16_ || split_ != nullptr ? kPackCycles : 0.5,
            .last_block = 0.25};
  }
  ProductGrain block_grain(const Kernels& kernels) const override {
    if (split_ != nullptr) return split_->grain();
    return is_bf16_ ? bf16_->grain() : kernels.gemm_grain();
  }
  std::int64_t block_scratch_bytes(const Kernels&, const Block& size) const override {
    if (split_ != nullptr) return split_->scratch_bytes(size.rows, size.columns);
    return is_bf16_ ? bf16_->scratch_bytes(size.rows, size.columns) : 0;
  }
  void run_block(const BlockCall& call) const override {
    if (is_bf16_) return multiply_bf16(call, call.extents.depth, call.block, false);
    if (split_ != nullptr && call.extents.depth > 0) return multiply_split(call);
    call.kernels.weight_gradient(block_of(call, call.extents.depth, call.block, false));
  }

  KernelChoice choice() const override {
    if (split_ != nullptr) return {split_->name, "floats in three parts"};
    return is_bf16_ ? KernelChoice{bf16_->name, "bf16"} : KernelChoice{};
  }

 private:
  bool is_streamed() const { return product_.shared_bytes >= kStreamedBytes; }
  // A weight's gradient is a float: only what is multiplied is rounded.
  void multiply_bf16(const auto& call, std::int64_t rows, const Block& block,
                     bool accumulate) const {
    float* const dw = call.output(0) + block.row * k_ + block.column;
    bf16_->multiply({.rows = block.rows,
                     .n = block.columns,
                     .k = rows,
                     .x = call.input(0) + block.row,
                     .x_stride = 1,
                     .x_step = n_,
                     .narrow_x = has_narrow_dy_ ? call.narrow_input(0) + block.row : nullptr,
                     .packed = nullptr,
                     .b = call.input(1) + block.column,
                     .b_stride = k_,
                     .narrow_b = has_narrow_x_ ? call.narrow_input(1) + block.column : nullptr,
                     .bias = nullptr,
                     .is_rounded = false,
                     .activation = Unary::None,
                     .residual = accumulate ? dw : nullptr,
                     .residual_stride = k_,
                     .y = dw,
                     .y_stride = k_,
                     .scratch = call.scratch,
                     .streams_y = !accumulate && is_streamed()});
  }
  void multiply_split(const BlockCall& call) const {
    const Block& block = call.block;
    split_->multiply({.rows = block.rows,
                      .n = block.columns,
                      .k = call.extents.depth,
                      .x = call.input(0) + block.row,
                      .x_stride = 1,
                      .packed = nullptr,
                      .bias = nullptr,
                      .activation = Unary::None,
                      .residual = nullptr,
                      .residual_stride = 0,
                      .y = call.output(0) + block.row * k_ + block.column,
                      .y_stride = k_,
                      .scratch = call.scratch,
                      .parts = nullptr,
                      .next_column = 0,
                      .x_step = n_,
                      .b = call.input(1) + block.column,
                      .b_stride_n = 1,
                      .b_stride_k = k_,
                      .streams_y = is_streamed()});
  }
  WeightGradientArgs block_of(const auto& call, std::int64_t rows, const Block& block,
                              bool accumulate) const {
    return {.rows = rows,
            .n = block.rows,
            .k = block.columns,
            .dy = call.input(0) + block.row,
            .dy_stride = n_,
            .x = call.input(1) + block.column,
            .x_stride = k_,
            .dw = call.output(0) + block.row * k_ + block.column,
            .dw_stride = k_,
            .accumulate = accumulate};
  }

  RowSpace space_;
  std::int64_t n_, k_;
  Product product_;
  bool is_bf16_ = false, has_narrow_dy_ = false, has_narrow_x_ = false;
  const Bf16Kernels* bf16_ = nullptr;
  const SplitKernels* split_ = nullptr;  // of blocks, or null
};

// layer_norm_gradient and rms_norm_gradient, which has no sum of dy.
class NormGradientStep final : public Step {
 public:
  NormGradientStep(RowSpace space, float eps) : space_(std::move(space)), eps_(eps) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.input_widths[0];
    const bool is_centered = call.outputs.size() == 3;
    const auto backward =
        is_centered ? call.kernels.layer_norm_backward : call.kernels.rms_norm_backward;
    backward({.rows = call.rows,
              .n = n,
              .dy = call.input(0),
              .dy_stride = n,
              .x = call.input(1),
              .x_stride = n,
              .gamma = call.input(2),
              .eps = eps_,
              .dx_add = nullptr,
              .dx_add_stride = 0,
              .dx = call.output(0),
              .dx_stride = n,
              .dgamma = call.output(1),
              .dbeta = is_centered ? call.output(2) : nullptr});
  }

 private:
  RowSpace space_;
  float eps_;
};

class MapGradientStep final : public Step {
 public:
  MapGradientStep(RowSpace space, Unary function) : space_(std::move(space)), function_(function) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    call.kernels.unary_backward(function_, call.input(0), call.input(1),
                                call.rows * space_.output_widths[0], call.output(0));
  }

 private:
  RowSpace space_;
  Unary function_;
};

using MadeStep = std::unique_ptr<Step>;

MadeStep make_input_gradient(const Graph& graph, NodeId id) {
  const Value weight = graph.input(id, 1);
  const std::optional<RowShape> dy = row_shape(graph.type(graph.input(id, 0)));
  const std::optional<RowShape> dx = row_shape(graph.types(id)[0]);
  if (!dy || !dx || !graph.is(weight.node, "state") || graph.type(weight).dtype != DType::F32)
    return nullptr;
  return std::make_unique<LinearInputGradientStep>(RowSpace{dy->rows, {dy->width, 0}, {dx->width}},
                                                   dy->width, dx->width);
}

MadeStep make_weight_gradient(const Graph& graph, NodeId id) {
  const std::optional<RowShape> dy = row_shape(graph.type(graph.input(id, 0)));
  const std::optional<RowShape> x = row_shape(graph.type(graph.input(id, 1)));
  if (!dy || !x || dy->rows != x->rows) return nullptr;
  return std::make_unique<LinearWeightGradientStep>(RowSpace{dy->rows, {dy->width, x->width}, {0}});
}

MadeStep make_norm_gradient(const Graph& graph, NodeId id) {
  const std::optional<RowShape> dy = row_shape(graph.type(graph.input(id, 0)));
  if (!dy) return nullptr;
  RowSpace space{dy->rows, {dy->width, dy->width, 0}, {dy->width}};
  space.output_widths.resize(graph.types(id).size(), 0);  // the rest are sums over rows
  return std::make_unique<NormGradientStep>(std::move(space),
                                            static_cast<float>(graph.attribute(id).real("eps")));
}

MadeStep make_map_gradient(const Graph& graph, NodeId id) {
  const Type& type = graph.types(id)[0];
  const AttributeReader attributes = graph.attribute(id);
  const Activation* const map = find_activation(attributes.text("function"), attributes);
  if (type.dtype != DType::F32 || map == nullptr || !map->has_backward) return nullptr;
  const RowShape dy = row_shape(type).value_or(RowShape{type.num_elements(), 1});
  return std::make_unique<MapGradientStep>(RowSpace{dy.rows, {dy.width, dy.width}, {dy.width}},
                                           map->function);
}

const Register linear_input_gradient{CpuKernel{"linear_input_gradient", make_input_gradient}};
const Register linear_weight_gradient{CpuKernel{"linear_weight_gradient", make_weight_gradient}};
const Register layer_norm_gradient{CpuKernel{"layer_norm_gradient", make_norm_gradient}};
const Register rms_norm_gradient{CpuKernel{"rms_norm_gradient", make_norm_gradient}};
const Register map_gradient{CpuKernel{"map_gradient", make_map_gradient}};

}  // namespace
}  // namespace lathe::engine
