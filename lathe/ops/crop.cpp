#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// crop(x) {begins, steps}: the elements at begins[a], begins[a] + steps[a], ... of each axis a, as
// many as the type written has, which may be a symbol. A begin below zero counts from the end, a
// step below zero goes backwards. crop_gradient(dy) {begins, steps} puts them back into zeros.
namespace lathe::ops::crop {
namespace {

struct Box {
  std::vector<std::int64_t> begins, steps;
};

Box read_box(std::string_view op, const AttributeReader& attributes, std::size_t rank) {
  Box box{attributes.integers("begins"), attributes.integers("steps")};
  if (box.steps.empty()) box.steps.assign(rank, 1);
  if (box.begins.size() != rank || box.steps.size() != rank)
    fail("{}: begins and steps must have {} numbers", op, rank);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (box.steps[axis] == 0 || box.steps[axis] < -kMost || box.steps[axis] > kMost ||
        box.begins[axis] < -kMost || box.begins[axis] > kMost)
      fail("{}: begin {} with step {} is no place", op, box.begins[axis], box.steps[axis]);
  return box;
}

// The elements of `whole` that the box takes, in row-major order of `part`.
std::vector<std::int64_t> indices_of(const Box& box, std::span<const std::int64_t> whole,
                                     std::span<const std::int64_t> part) {
  std::vector<std::int64_t> strides = row_major_strides(whole);
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    const std::int64_t begin =
        box.begins[axis] < 0 ? box.begins[axis] + whole[axis] : box.begins[axis];
    const std::int64_t last = begin + (part[axis] - 1) * box.steps[axis];
    if (part[axis] > 0 && (begin < 0 || begin >= whole[axis] || last < 0 || last >= whole[axis]))
      fail("crop: elements {} to {} are outside axis {}, which has size {}", begin, last, axis,
           whole[axis]);
    offset += begin * strides[axis];
    strides[axis] *= box.steps[axis];
  }
  return strided_indices(part, strides, num_elements(part) == 0 ? 0 : offset);
}

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& result = declared_type("crop", call);
  require_rank("crop", "the result", result, x.rank());
  read_box("crop", call.attributes(), x.rank());
  return {{.dtype = x.dtype, .shape = result.shape}};
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  Tensor& y = call.outputs[0];
  copy_elements(x, indices_of(read_box("crop", call.attributes, x.rank()), x.dims(), y.dims()), y);
}

void gradient_reference(const KernelCall& call) {
  const Tensor& dy = call.input(0);
  Tensor& dx = call.outputs[0];
  const std::vector<double> from = read_elements(dy);
  const auto places =
      indices_of(read_box("crop_gradient", call.attributes, dy.rank()), dx.dims(), dy.dims());
  std::vector<double> values(static_cast<std::size_t>(dx.num_elements()), 0.0);
  for (std::size_t i = 0; i < places.size(); ++i)
    values[static_cast<std::size_t>(places[i])] = from[i];
  write_elements(dx, values);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "crop_gradient", {gradients[0]}, graph.attributes(node),
                 {operand_type(graph, node, 0)})};
}

Op box_op(std::string name, std::string summary, std::string operand) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {{.name = std::move(operand)}},
      .attributes = {{.name = "begins",
                      .default_value = std::vector<std::int64_t>{},
                      .summary = "the first index of each axis; below zero from its end",
                      .required = true},
                     {.name = "steps",
                      .default_value = std::vector<std::int64_t>{},
                      .summary = "the distance of two indices of each axis; none: 1"}},
      .infer = infer,
      .flops = [](const OpCall&) { return Size(0); },
  };
}

const Register forward{[] {
  Op op = box_op("crop", "a box of x of the shape written, with steps along its axes", "x");
  op.reference = reference;
  op.gradient = gradient;
  op.examples = {"crop(f32[4,5]) {begins=[1,-1], steps=[2,-2]} : f32[2,3]",
                 "crop(f32[1,9]) {begins=[0,0]} : f32[1,L]"};
  return op;
}()};

const Register backward{[] {
  Op op = box_op("crop_gradient", "the gradient of crop: zeros with dy where it was taken", "dy");
  op.reference = gradient_reference;
  op.is_differentiable = false;
  op.examples = {"crop_gradient(f32[2,3]) {begins=[1,-1], steps=[2,-2]} : f32[4,5]"};
  return op;
}()};

}  // namespace
}  // namespace lathe::ops::crop
