#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// gather(x, indices[..]) {axis}: the slices of x along one axis that the indices name, in their
// shape: y[a,i..,b] = x[a,indices[i..],b]. Indices below zero count from the end.
// gather_gradient(dy, indices, like) adds them back into zeros; only the shape of `like` is read.
namespace lathe::ops::gather {
namespace {

Shape gathered_shape(std::string_view op, const Type& x, const Type& indices, std::int64_t axis) {
  require_integer(op, "indices", indices);
  const auto position = static_cast<std::ptrdiff_t>(axis_position(op, axis, x));
  Shape shape(x.shape.begin(), x.shape.begin() + position);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + position + 1, x.shape.end());
  return shape;
}

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  return {{.dtype = x.dtype,
           .shape = gathered_shape("gather", x, call.input(1), call.attributes().integer("axis"))}};
}

std::vector<Type> infer_gradient(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& like = call.input(2);
  const Shape expected =
      gathered_shape("gather_gradient", like, call.input(1), call.attributes().integer("axis"));
  if (dy.shape != expected)
    fail("gather_gradient: dy {} has not shape {}", to_text(dy), to_text(expected));
  return {{.dtype = dy.dtype, .shape = like.shape}};
}

// For each element of the gathered array, the element of x that it is.
std::vector<std::int64_t> sources(std::span<const std::int64_t> dims, const Tensor& indices,
                                  std::int64_t axis) {
  const AxisSplit split = split_around(dims, axis_position(axis, dims.size()));
  std::vector<std::int64_t> places = read_integers(indices);
  for (std::int64_t& place : places) {
    if (place < -split.size || place >= split.size)
      fail("gather: index {} is outside an axis of size {}", place, split.size);
    if (place < 0) place += split.size;
  }
  std::vector<std::int64_t> result;
  for (std::int64_t o = 0; o < split.outer; ++o)
    for (const std::int64_t place : places)
      for (std::int64_t i = 0; i < split.inner; ++i)
        result.push_back((o * split.size + place) * split.inner + i);
  return result;
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  copy_elements(x, sources(x.dims(), call.input(1), call.attributes.integer("axis")),
                call.outputs[0]);
}

void gradient_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  Tensor& dx = call.outputs[0];
  const auto places = sources(dx.dims(), call.input(1), call.attributes.integer("axis"));
  std::vector<double> values(static_cast<std::size_t>(dx.num_elements()), 0.0);
  for (std::size_t i = 0; i < places.size(); ++i)
    values[static_cast<std::size_t>(places[i])] += dy[i];
  write_elements(dx, values);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {
      derive(graph, node, "gradient_x", "gather_gradient",
             {gradients[0], graph.input(node, 1), graph.input(node, 0)}, graph.attributes(node)),
      kNone};
}

const AttributeSpec kAxis{
    .name = "axis", .default_value = std::int64_t{0}, .summary = "the axis that indices count"};

const Register forward{Op{
    .name = "gather",
    .summary = "the slices of x along an axis that indices name, in the shape of the indices",
    .operands = {{.name = "x"}, {.name = "indices"}},
    .attributes = {kAxis},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"gather(f32[3,4], i64[2,2]) {axis=1}", "gather(f32[4,2], i64[B,L])",
                 "gather(i64[T,3], i64[]) {axis=-1}"},
}};

const Register backward{Op{
    .name = "gather_gradient",
    .summary = "the gradient of gather: zeros like x, with dy added where it was taken",
    .operands = {{.name = "dy"}, {.name = "indices"}, {.name = "like"}},
    .attributes = {kAxis},
    .infer = infer_gradient,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = gradient_reference,
    .is_differentiable = false,
    .examples = {"gather_gradient(f32[3,2,2], i64[2,2], f32[3,4]) {axis=1}"},
}};

}  // namespace
}  // namespace lathe::ops::gather
