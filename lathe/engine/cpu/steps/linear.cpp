#include <algorithm>

#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/linear_weights.h"
#include "lathe/engine/cpu/packed_product.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// linear and fused_linear: a product with packed weights, bias, activation and residual in its
// epilogue. Large weights may be multiplied in parts, those that are trained where they lie. Zeros
// may be left out where nobody trains the weights.
class LinearStep final : public Step {
 public:
  LinearStep(RowSpace space, std::int64_t n, std::int64_t k, Unary activation, bool has_residual,
             bool is_trained, bool may_be_split)
      : space_(std::move(space)),
        product_{space_.rows, n, k, n * k * static_cast<std::int64_t>(sizeof(float))},
        activation_(activation),
        has_residual_(has_residual),
        is_trained_(is_trained),
        may_be_split_(may_be_split),
        weights_(n, k),
        packed_(n, k) {}

  const RowSpace* rows() const override { return &space_; }

  void set_precision(Precision precision) override { packed_.set_precision(precision); }
  Narrow narrow_input(std::size_t operand) const override {
    return operand == 0 ? packed_.narrow_x() : Narrow::No;
  }
  Narrow narrow_output(std::size_t) const override {
    return packed_.narrow_y(activation_ != Unary::None || has_residual_);
  }
  void set_narrow(const std::vector<bool>& inputs, const std::vector<bool>& outputs) override {
    packed_.set_narrow(inputs[0], outputs[0]);
  }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    const std::span<const float> weight = states[1]->data<float>();
    const std::int64_t k = space_.input_widths[0], n = space_.output_widths[0];
    if (packed_.is_bf16()) return packed_.pack(kernels, weight.data(), k, 1);
    const SplitKernels* const split =
        may_be_split_ ? split_kernels(*parse_isa(kernels.isa)) : nullptr;
    if (is_trained_ && split != nullptr && has_split_extents(n, k))
      return packed_.read_split(*split, k, 1);
    if (is_trained_) return weights_.pack_dense(kernels, weight);
    weights_.choose(kernels, weight);
    if (split != nullptr && weights_.speed() < kSplitSpeed && suits_split(weight, n, k))
      return packed_.pack_split(*split, weight);
    packed_.clear();
    weights_.pack_chosen(kernels, weight);
  }

  std::int64_t layout_bytes() const override { return weights_.bytes() + packed_.bytes(); }
  bool reads_state(std::size_t operand) const override { return operand != 1 || packed_.reads_b(); }
  std::int64_t scratch_bytes(const Kernels& kernels, std::int64_t rows) const override {
    if (is_packed()) return packed_.rows_scratch_bytes(rows);
    return weights_.scratch_floats(kernels, rows) * static_cast<std::int64_t>(sizeof(float));
  }

  void run_rows(const RowCall& call) const override {
    LinearArgs args = arguments(call);
    args.rows = call.rows;
    if (is_packed())
      return packed_.multiply_rows(call.kernels, call.rows, packed_arguments(args, call));
    weights_.multiply(call.kernels, args);
  }

  const Product* as_product() const override { return &product_; }
  ProductGrain block_grain(const Kernels& kernels) const override { return packed_.grain(kernels); }
  PartitionLimits block_limits() const override {
    if (is_packed()) return packed_.limits();
    if (weights_.is_sparse()) return {.most_rows = kSparseRows, .cuts_columns = false};
    return {};
  }
  std::int64_t block_scratch_bytes(const Kernels& kernels, const Block& size) const override {
    if (!is_packed() && weights_.is_sparse()) return scratch_bytes(kernels, size.rows);
    return packed_.block_scratch_bytes(kernels, size);
  }
  bool is_by_rows() const override { return is_packed() && packed_.is_by_rows(); }
  std::int64_t kept_bytes(std::int64_t rows) const override {
    return is_packed() ? packed_.kept_bytes(rows) : 0;
  }
  void keep_rows(const float* x, std::int64_t rows, std::byte* to) const override {
    packed_.keep_rows(x, rows, to);
  }
  void run_block(const BlockCall& call) const override {
    LinearArgs args = arguments(call);
    if (is_packed()) {
      PackedProductArgs packed = packed_arguments(args, call);
      packed.kept = call.kept;
      packed.next_column = call.next_column;
      return packed_.multiply_block(call.kernels, call.block, packed);
    }
    if (!weights_.is_sparse()) return weights_.multiply_block(call.kernels, args, call.block);
    args.rows = call.block.rows;
    args.x += call.block.row * call.extents.depth;
    args.y += call.block.row * call.extents.columns;
    if (args.residual != nullptr) args.residual += call.block.row * call.extents.columns;
    weights_.multiply(call.kernels, args);
  }

  KernelChoice choice() const override {
    return is_packed() ? packed_.choice() : weights_.choice();
  }

 private:
  bool is_packed() const { return packed_.is_bf16() || packed_.is_split(); }
  // Of floats in parts, in those of the dense kernel: `bench_kernels`.
  static constexpr double kSplitSpeed = 1.7;
  // Few enough for x and y of them to stay in the nearest caches while all zeros' neighbours pass.
  static constexpr std::int64_t kSparseRows = 42;

  LinearArgs arguments(const auto& call) const {
    const auto operand = [&](std::size_t i) {
      return i < call.inputs.size() ? call.input(i) : nullptr;
    };
    return {.x = call.input(0),
            .bias = operand(2),
            .activation = activation_,
            .residual = operand(3),
            .y = call.output(0),
            .scratch = reinterpret_cast<float*>(call.scratch)};
  }

  PackedProductArgs packed_arguments(const LinearArgs& args, const auto& call) const {
    return {.x = args.x,
            .b = call.input(1),
            .bias = args.bias,
            .activation = args.activation,
            .residual = args.residual,
            .y = args.y,
            .scratch = call.scratch};
  }

  RowSpace space_;
  Product product_;
  Unary activation_;
  bool has_residual_;
  bool is_trained_;
  bool may_be_split_;
  LinearWeights weights_;  // or
  PackedProduct packed_;   // in bfloat16 or in parts
};

// The same with a weight that the graph computes, or is handed: each task packs some of its columns
// and multiplies all rows with them.
class ComputedLinearStep final : public Step {
 public:
  ComputedLinearStep(RowShape x, std::int64_t n, Unary activation)
      : x_(std::move(x)), n_(n), activation_(activation) {}

  void run_whole(const WholeCall& call) const override {
    constexpr std::int64_t kColumns = 128;  // of a task
    const auto operand = [&](std::size_t i) {
      return i < call.inputs.size() ? reinterpret_cast<const float*>(call.inputs[i]) : nullptr;
    };
    const std::int64_t rows = x_.rows.evaluate(call.symbols), k = x_.width;
    const float *const bias = operand(2), *const residual = operand(3);
    auto* const y = reinterpret_cast<float*>(call.outputs[0]);
    for (AlignedBuffer& buffer : call.scratch)
      buffer.reserve(call.kernels.packed_size(kColumns, k) *
                     static_cast<std::int64_t>(sizeof(float)));
    call.parallel((n_ + kColumns - 1) / kColumns, [&](std::int64_t task, int thread) {
      const std::int64_t first = task * kColumns, columns = std::min(kColumns, n_ - first);
      float* const packed = call.scratch[static_cast<std::size_t>(thread)].floats();
      call.kernels.pack_b(operand(1) + first * k, columns, k, k, 1, packed);
      call.kernels.gemm({.rows = rows,
                         .n = columns,
                         .k = k,
                         .x = operand(0),
                         .x_stride = k,
                         .packed = packed,
                         .bias = bias != nullptr ? bias + first : nullptr,
                         .activation = activation_,
                         .residual = residual != nullptr ? residual + first : nullptr,
                         .residual_stride = n_,
                         .y = y + first,
                         .y_stride = n_,
                         .accumulate = false});
    });
  }

 private:
  RowShape x_;
  std::int64_t n_;
  Unary activation_;
};

std::unique_ptr<Step> make_linear(const Graph& graph, NodeId id) {
  const Value weight = graph.input(id, 1);
  const std::optional<RowShape> x = row_shape(graph.type(graph.input(id, 0)));
  const std::optional<RowShape> y = row_shape(graph.types(id)[0]);
  if (!x || !y || graph.type(weight).dtype != DType::F32) return nullptr;
  Unary activation = Unary::None;
  if (graph.is(id, "fused_linear")) {
    const std::string& name = graph.attribute(id).text("activation");
    const Activation* const fused = find_epilogue(name);
    if (fused == nullptr && name != "none") return nullptr;
    if (fused != nullptr) activation = fused->function;
  }
  if (!graph.is(weight.node, "state"))
    return std::make_unique<ComputedLinearStep>(*x, y->width, activation);
  RowSpace space{x->rows, {x->width, 0, 0, y->width}, {y->width}};
  space.input_widths.resize(graph.inputs(id).size());
  const bool has_residual = graph.inputs(id).size() > 3 && !graph.input(id, 3).is_none();
  return std::make_unique<LinearStep>(std::move(space), y->width, x->width, activation,
                                      has_residual, !graph.state_updates().empty(),
                                      may_be_split(graph));
}

const Register linear{CpuKernel{"linear", make_linear}};
const Register fused_linear{CpuKernel{"fused_linear", make_linear}};

}  // namespace
}  // namespace lathe::engine
