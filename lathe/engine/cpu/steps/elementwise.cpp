#include <algorithm>
#include <array>

#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/row_map.h"
#include "lathe/ops/axes.h"

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

// How an operand of a binary map lies beside the rows of the result.
struct RowOperand {
  std::int64_t width;   // of its rows in the plan, 0 where it is read whole
  std::int64_t stride;  // from row to row
  std::int64_t step;    // from column to column
};

class BinaryStep final : public Step {
 public:
  BinaryStep(RowSpace space, Binary op, std::array<RowOperand, 2> operands)
      : space_(std::move(space)), op_(op), operands_(operands) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    std::int64_t rows = call.rows, n = space_.output_widths[0];
    const auto is_flat = [&](const RowOperand& a) {
      return a.stride == n ? a.step == 1 : a.stride == 0 && a.step == 0;
    };
    // Rows of one number each are better one row.
    if (n == 1 && is_flat(operands_[0]) && is_flat(operands_[1])) std::swap(rows, n);
    call.kernels.binary({.op = op_,
                         .rows = rows,
                         .n = n,
                         .a = {call.input(0), operands_[0].stride, operands_[0].step},
                         .b = {call.input(1), operands_[1].stride, operands_[1].step},
                         .y = call.output(0),
                         .y_stride = n});
  }

 private:
  RowSpace space_;
  Binary op_;
  std::array<RowOperand, 2> operands_;
};

// Any broadcast: every operand walks with strides of its own, 0 where it is stretched.
class BroadcastStep final : public Step {
 public:
  explicit BroadcastStep(Binary op) : op_(op) {}
  void run_whole(const WholeCall& call) const override {
    std::vector<std::int64_t> dims = call.graph.types(call.node)[0].dims(call.symbols);
    std::array<std::vector<std::int64_t>, 2> strides;
    for (std::size_t i = 0; i < 2; ++i)
      strides[i] =
          strides_of(call.graph.type(call.graph.input(call.node, i)).dims(call.symbols), dims);
    const std::int64_t n = dims.back();
    dims.pop_back();
    const std::int64_t rows = num_elements(dims);
    if (rows == 0 || n == 0) return;
    constexpr std::int64_t kTaskElements = 1 << 14;
    const std::int64_t grain = std::max<std::int64_t>(1, kTaskElements / n);
    call.parallel((rows + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(rows, (task + 1) * grain);
      for (std::int64_t row = task * grain; row < end; ++row) {
        const auto operand = [&](std::size_t i) -> Operand {
          std::int64_t place = 0, rest = row;
          for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
            place += rest % dims[axis] * strides[i][axis];
          return {reinterpret_cast<const float*>(call.inputs[i]) + place, 0, strides[i].back()};
        };
        call.kernels.binary({.op = op_,
                             .rows = 1,
                             .n = n,
                             .a = operand(0),
                             .b = operand(1),
                             .y = reinterpret_cast<float*>(call.outputs[0]) + row * n,
                             .y_stride = n});
      }
    });
  }

 private:
  static std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& from,
                                              const std::vector<std::int64_t>& to) {
    const std::vector<std::int64_t> own = ops::row_major_strides(from);
    std::vector<std::int64_t> strides(to.size(), 0);
    const std::size_t added = to.size() - from.size();
    for (std::size_t axis = 0; axis < from.size(); ++axis)
      if (from[axis] != 1) strides[added + axis] = own[axis];
    return strides;
  }

  Binary op_;
};

// The rows of a value whose elements stand for themselves: of its last axis where that has a known
// size, of one number each otherwise.
std::optional<RowShape> element_rows(const Type& type) {
  if (type.dtype != DType::F32) return std::nullopt;
  return row_shape(type).value_or(RowShape{type.num_elements(), 1});
}

std::unique_ptr<Step> make_unary(const Graph& graph, NodeId id) {
  if (graph.is(id, "relu") && !is_floating(graph.types(id)[0].dtype))
    return make_integer_row_step(graph, id, {true}, [](const IntegerRow& row) {
      for (std::size_t i = 0; i < row.result.size(); ++i)
        row.result[i] = std::max<std::int64_t>(0, row.operands[0][i]);
    });
  const std::optional<RowShape> x = element_rows(graph.types(id)[0]);
  const Activation* const activation = find_activation(graph.op(id).name, graph.attribute(id));
  if (!x || activation == nullptr) return nullptr;
  return std::make_unique<UnaryStep>(RowSpace{x->rows, {x->width}, {x->width}},
                                     activation->function);
}

Shape without_leading_ones(const Shape& shape) {
  const auto first =
      std::find_if(shape.begin(), shape.end(), [](const Size& size) { return size != Size(1); });
  return {first, shape.end()};
}

// A row for each row of the result, one row for all, one number for each row, or one for all.
std::optional<RowOperand> row_operand(const Type& operand, const Type& result, std::int64_t width) {
  const Shape own = without_leading_ones(operand.shape);
  if (own.empty()) return RowOperand{0, 0, 0};
  if (operand.shape == result.shape) return RowOperand{width, width, 1};
  if (own.size() == 1 && own[0] == Size(width)) return RowOperand{0, 0, 1};
  Shape one_each = result.shape;
  one_each.back() = Size(1);
  if (operand.shape == one_each) return RowOperand{1, 1, 0};
  return std::nullopt;
}

std::unique_ptr<Step> make_binary(const Graph& graph, NodeId id, Binary op) {
  const Type& result = graph.types(id)[0];
  const std::optional<RowShape> y = element_rows(result);
  if (!y) return nullptr;
  RowSpace space{y->rows, {}, {y->width}};
  std::array<RowOperand, 2> operands{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::optional<RowOperand> operand =
        row_operand(graph.type(graph.input(id, i)), result, y->width);
    // Rows of one number have lost their last axis: only equal shapes and numbers fit them.
    if (!operand || (!row_shape(result) && operand->stride != operand->step))
      return std::make_unique<BroadcastStep>(op);
    operands[i] = *operand;
    space.input_widths.push_back(operand->width);
  }
  return std::make_unique<BinaryStep>(std::move(space), op, operands);
}

CpuKernel binary_kernel(std::string op, Binary function) {
  return {std::move(op),
          [function](const Graph& graph, NodeId id) { return make_binary(graph, id, function); }};
}

// One record for each op that is an activation, in whichever forms.
const bool are_unary_ops_registered = [] {
  auto& kernels = Registry<CpuKernel>::instance();
  for (const Activation& activation : activations())
    if (kernels.find(activation.op) == nullptr)
      kernels.add({std::string(activation.op), make_unary});
  return true;
}();

const Register add{binary_kernel("add", Binary::Add)};
const Register sub{binary_kernel("sub", Binary::Subtract)};
const Register mul{binary_kernel("mul", Binary::Multiply)};
const Register div{binary_kernel("div", Binary::Divide)};
const Register minimum{binary_kernel("minimum", Binary::Min)};
const Register maximum{binary_kernel("maximum", Binary::Max)};

}  // namespace
}  // namespace lathe::engine
