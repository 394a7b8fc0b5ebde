#include <array>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

class UnaryStep final : public Step {
 public:
  UnaryStep(RowSpace space, Unary op) : space_(std::move(space)), op_(op) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    call.kernels.unary(op_, call.input(0), call.rows * space_.output_widths[0], call.output(0));
  }

 private:
  RowSpace space_;
  Unary op_;
};

class BinaryStep final : public Step {
 public:
  BinaryStep(RowSpace space, Binary op, std::array<std::int64_t, 2> strides,
             std::array<std::int64_t, 2> steps)
      : space_(std::move(space)), op_(op), strides_(strides), steps_(steps) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.output_widths[0];
    call.kernels.binary({.op = op_,
                         .rows = call.rows,
                         .n = n,
                         .a = {call.input(0), strides_[0], steps_[0]},
                         .b = {call.input(1), strides_[1], steps_[1]},
                         .y = call.output(0),
                         .y_stride = n});
  }

 private:
  RowSpace space_;
  Binary op_;
  std::array<std::int64_t, 2> strides_, steps_;
};

std::unique_ptr<Step> make_unary(const Graph& graph, NodeId id, Unary op) {
  const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
  if (!x) return nullptr;
  return std::make_unique<UnaryStep>(RowSpace{x->rows, {x->width}, {x->width}}, op);
}

// Equal shapes, or one operand a vector over the last axis, or a single number; every other
// broadcast is left to the reference kernel.
std::unique_ptr<Step> make_binary(const Graph& graph, NodeId id, Binary op) {
  const Type& result = graph.types(id)[0];
  const std::optional<RowShape> y = row_shape(result);
  if (!y) return nullptr;
  RowSpace space{y->rows, {}, {y->width}};
  std::array<std::int64_t, 2> strides{}, steps{};
  for (std::size_t i = 0; i < 2; ++i) {
    const Type& type = graph.type(graph.input(id, i));
    if (type.dtype != DType::F32) return nullptr;
    if (type.shape == result.shape) {
      space.input_widths.push_back(y->width);
      strides[i] = y->width;
      steps[i] = 1;
    } else if (type.rank() == 1 && type.shape[0] == Size(y->width)) {
      space.input_widths.push_back(0);
      steps[i] = 1;
    } else if (type.num_elements() == Size(1)) {
      space.input_widths.push_back(0);
    } else {
      return nullptr;
    }
  }
  return std::make_unique<BinaryStep>(std::move(space), op, strides, steps);
}

CpuKernel unary_kernel(std::string op, Unary function) {
  return {std::move(op),
          [function](const Graph& graph, NodeId id) { return make_unary(graph, id, function); }};
}

CpuKernel binary_kernel(std::string op, Binary function) {
  return {std::move(op),
          [function](const Graph& graph, NodeId id) { return make_binary(graph, id, function); }};
}

const Register relu{unary_kernel("relu", Unary::Relu)};
const Register tanh{unary_kernel("tanh", Unary::Tanh)};
const Register sigmoid{unary_kernel("sigmoid", Unary::Sigmoid)};
const Register silu{unary_kernel("silu", Unary::Silu)};
const Register quick_gelu{unary_kernel("quick_gelu", Unary::QuickGelu)};
const Register exp{unary_kernel("exp", Unary::Exp)};
const Register log{unary_kernel("log", Unary::Log)};
const Register neg{unary_kernel("neg", Unary::Negate)};
const Register abs{unary_kernel("abs", Unary::Abs)};
const Register sqrt{unary_kernel("sqrt", Unary::Sqrt)};
const Register reciprocal{unary_kernel("reciprocal", Unary::Reciprocal)};
const Register gelu{
    CpuKernel{"gelu", [](const Graph& graph, NodeId id) {
                const bool is_tanh = graph.attribute(id).text("approximate") == "tanh";
                return make_unary(graph, id, is_tanh ? Unary::GeluTanh : Unary::GeluErf);
              }}};
const Register add{binary_kernel("add", Binary::Add)};
const Register sub{binary_kernel("sub", Binary::Subtract)};
const Register mul{binary_kernel("mul", Binary::Multiply)};
const Register div{binary_kernel("div", Binary::Divide)};
const Register minimum{binary_kernel("minimum", Binary::Min)};
const Register maximum{binary_kernel("maximum", Binary::Max)};

}  // namespace
}  // namespace lathe::engine
