#include <vector>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/integer_rows.h"

namespace lathe::engine {
namespace {

// Narrow operands and sums of 32 bits go through the kernel of 16-bit products; anything wider is
// multiplied in 64 bits, one after another.
class IntegerLinearStep final : public Step {
 public:
  IntegerLinearStep(RowSpace space, IntegerRows x, IntegerRows y, DType weight, DType bias)
      : space_(std::move(space)),
        k_(x.width),
        n_(y.width),
        x_(x.dtype),
        y_(y.dtype),
        weight_(weight),
        bias_(bias) {
    const auto is_short = [](DType dtype) { return dtype == DType::I8 || dtype == DType::I16; };
    uses_kernel_ = is_short(x_) && is_short(weight_) && y_ != DType::I64;
  }
  const RowSpace* rows() const override { return &space_; }

  void prepare(const Kernels&, std::span<const Tensor* const> states) override {
    prepared_.clear();
    if (!uses_kernel_ || states[1] == nullptr) return;
    prepared_.resize(static_cast<std::size_t>(n_ * padded_depth(k_)));
    pack(states[1]->bytes(), prepared_.data());
  }

  std::int64_t scratch_bytes(const Kernels&, std::int64_t rows) const override {
    const std::int64_t depth = padded_depth(k_);
    const std::int64_t weights = prepared_.empty() && uses_kernel_ ? n_ * depth * 2 : 0;
    return uses_kernel_ ? rows * n_ * 4 + rows * depth * 2 + weights : (k_ + n_) * 8;
  }

  void run_rows(const RowCall& call) const override {
    if (uses_kernel_)
      run_by_kernel(call);
    else
      run_in_64_bits(call);
  }

 private:
  void pack(const std::byte* weight, std::int16_t* to) const {
    for (std::int64_t j = 0; j < n_; ++j)
      to_shorts(weight_, weight + j * k_ * size_of(weight_), k_, padded_depth(k_),
                to + j * padded_depth(k_));
  }

  std::int64_t bias_at(const RowCall& call, std::int64_t j) const {
    return call.inputs.size() > 2 && call.inputs[2] != nullptr
               ? integer_at(bias_, call.inputs[2], j)
               : 0;
  }

  void run_by_kernel(const RowCall& call) const {
    const std::int64_t depth = padded_depth(k_);
    auto* const sums = reinterpret_cast<std::int32_t*>(call.scratch);
    auto* const x = reinterpret_cast<std::int16_t*>(sums + call.rows * n_);
    const std::int16_t* weights = prepared_.data();
    if (prepared_.empty()) {
      pack(call.inputs[1], x + call.rows * depth);
      weights = x + call.rows * depth;
    }
    for (std::int64_t r = 0; r < call.rows; ++r)
      to_shorts(x_, call.inputs[0] + r * k_ * size_of(x_), k_, depth, x + r * depth);
    call.kernels.integer_products({.m = call.rows,
                                   .n = n_,
                                   .depth = depth,
                                   .a = x,
                                   .a_stride = depth,
                                   .b = weights,
                                   .b_stride = depth,
                                   .y = sums,
                                   .y_stride = n_});
    std::vector<std::int64_t> bias(static_cast<std::size_t>(n_)), row(bias.size());
    for (std::int64_t j = 0; j < n_; ++j) bias[static_cast<std::size_t>(j)] = bias_at(call, j);
    for (std::int64_t r = 0; r < call.rows; ++r) {
      // A sum without its bias may wrap around; with it, it fits its storage.
      for (std::size_t j = 0; j < row.size(); ++j)
        row[j] = static_cast<std::int32_t>(
            static_cast<std::uint32_t>(sums[r * n_ + static_cast<std::int64_t>(j)] + bias[j]));
      narrow(y_, row.data(), n_, call.outputs[0] + r * n_ * size_of(y_));
    }
  }

  void run_in_64_bits(const RowCall& call) const {
    auto* const x = reinterpret_cast<std::int64_t*>(call.scratch);
    std::int64_t* const y = x + k_;
    for (std::int64_t r = 0; r < call.rows; ++r) {
      widen(x_, call.inputs[0] + r * k_ * size_of(x_), k_, x);
      for (std::int64_t j = 0; j < n_; ++j) {
        std::int64_t sum = bias_at(call, j);
        for (std::int64_t i = 0; i < k_; ++i)
          sum += x[i] * integer_at(weight_, call.inputs[1], j * k_ + i);
        y[j] = sum;
      }
      narrow(y_, y, n_, call.outputs[0] + r * n_ * size_of(y_));
    }
  }

  RowSpace space_;
  std::int64_t k_, n_;
  DType x_, y_, weight_, bias_;
  bool uses_kernel_ = false;
  std::vector<std::int16_t> prepared_;  // the weight, where it is a state
};

std::unique_ptr<Step> make_integer_linear(const Graph& graph, NodeId id) {
  const std::optional<IntegerRows> x = integer_rows(graph.type(graph.input(id, 0)));
  const std::optional<IntegerRows> y = integer_rows(graph.types(id)[0]);
  if (!x || !y || !integer_rows(graph.type(graph.input(id, 1)))) return nullptr;
  const bool has_bias = graph.inputs(id).size() > 2 && !graph.input(id, 2).is_none();
  RowSpace space{x->rows, {x->width}, {y->width}};
  space.input_widths.resize(graph.inputs(id).size(), 0);
  return std::make_unique<IntegerLinearStep>(
      std::move(space), *x, *y, graph.type(graph.input(id, 1)).dtype,
      has_bias ? graph.type(graph.input(id, 2)).dtype : DType::I8);
}

const Register integer_linear{CpuKernel{"integer_linear", make_integer_linear}};

}  // namespace
}  // namespace lathe::engine
