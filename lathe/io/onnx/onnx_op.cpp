#include "lathe/io/onnx/onnx_op.h"

#include <cmath>

#include "lathe/core/quote_text.h"
#include "lathe/ops/elements.h"

namespace lathe::io::onnx {
namespace {

template <typename T>
const T* find_attribute(const OnnxNode& node, std::string_view name, const char* kind) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return nullptr;
  if (const T* value = std::get_if<T>(&found->second)) return value;
  fail("attribute {} is no {}", quote_text(name), kind);
}

}  // namespace

OnnxCall::OnnxCall(const OnnxNode& node, std::int64_t opset, Graph& graph,
                   std::vector<Known*> inputs, Materialize materialize, Materialize transposed)
    : node_(node),
      opset_(opset),
      graph_(graph),
      inputs_(std::move(inputs)),
      materialize_(std::move(materialize)),
      transposed_(std::move(transposed)),
      name_(!node.name.empty()     ? node.name
            : node.outputs.empty() ? node.op
                                   : node.outputs[0]),
      results_(node.outputs.size()) {}

std::int64_t OnnxCall::integer(std::string_view name, std::int64_t absent) const {
  const auto* value = find_attribute<std::int64_t>(node_, name, "whole number");
  return value == nullptr ? absent : *value;
}

double OnnxCall::real(std::string_view name, double absent) const {
  const auto* value = find_attribute<double>(node_, name, "number");
  return value == nullptr ? absent : *value;
}

std::string OnnxCall::text(std::string_view name, std::string_view absent) const {
  const auto* value = find_attribute<std::string>(node_, name, "text");
  return value == nullptr ? std::string(absent) : *value;
}

std::vector<std::int64_t> OnnxCall::integers(std::string_view name,
                                             std::vector<std::int64_t> absent) const {
  const auto* value =
      find_attribute<std::vector<std::int64_t>>(node_, name, "list of whole numbers");
  return value == nullptr ? std::move(absent) : *value;
}

const Known& OnnxCall::known(std::size_t index) const {
  if (!has(index)) fail("{}: operand {} is missing", node_.op, index);
  return *inputs_[index];
}

Value OnnxCall::value(std::size_t index) {
  if (!has(index)) fail("{}: operand {} is missing", node_.op, index);
  return materialize_(*inputs_[index]);
}

Value OnnxCall::weight(std::size_t index) {
  if (!transposed_) return transpose(value(index), {1, 0}, "rows");
  return transposed_(*inputs_[index]);
}

Type OnnxCall::type(std::size_t index) {
  const Known& operand = known(index);
  if (!operand.value.is_none()) return graph_.type(operand.value);
  if (operand.constant) {
    Type type{.dtype = operand.constant->dtype(), .shape = {}};
    for (const std::int64_t size : operand.constant->dims()) type.shape.emplace_back(size);
    return type;
  }
  if (operand.sizes) {
    Type type{.dtype = operand.sizes->dtype, .shape = {}};
    for (const std::int64_t size : operand.sizes->dims) type.shape.emplace_back(size);
    return type;
  }
  if (operand.affine) return {.dtype = operand.affine->dtype, .shape = operand.affine->shape};
  return graph_.type(value(index));
}

const Tensor* OnnxCall::constant(std::size_t index) const {
  return has(index) && inputs_[index]->constant ? &*inputs_[index]->constant : nullptr;
}

const Tensor& OnnxCall::need_constant(std::size_t index, std::string_view what) const {
  known(index);
  if (const Tensor* tensor = constant(index)) return *tensor;
  refuse("{} {} is computed while the model runs, and must be known before", what,
         quote_text(node_.inputs[index]));
}

std::vector<std::int64_t> OnnxCall::need_integers(std::size_t index, std::string_view what) const {
  const Tensor& tensor = need_constant(index, what);
  if (is_floating(tensor.dtype())) refuse("{} are no whole numbers", what);
  return ops::read_integers(tensor);
}

double OnnxCall::need_number(std::size_t index, std::string_view what) const {
  const Tensor& tensor = need_constant(index, what);
  if (tensor.num_elements() != 1)
    refuse("{} is {}, expected one number", what, to_text(tensor.dims()));
  if (tensor.dtype() == DType::I64 && std::fabs(tensor.at(0)) >= 0x1p53)
    refuse("{} is {}, beyond what doubles hold exactly", what, ops::read_integers(tensor)[0]);
  return tensor.at(0);
}

std::vector<Size> OnnxCall::need_sizes(std::size_t index, std::string_view what) const {
  const Known& operand = known(index);
  if (operand.sizes) return operand.sizes->elements;
  std::vector<Size> sizes;
  for (const std::int64_t size : need_integers(index, what)) sizes.emplace_back(size);
  return sizes;
}

std::optional<std::vector<std::int64_t>> OnnxCall::integers_of(std::string_view attribute,
                                                               std::size_t operand) const {
  if (has_attribute(attribute)) return integers(attribute);
  if (has(operand)) return need_integers(operand, attribute);
  return std::nullopt;
}

Value OnnxCall::add(std::string op, std::vector<Value> inputs, Attributes attributes,
                    std::vector<Type> types, std::string_view role) {
  return {graph_.add({.name = role.empty() ? name_ : fmt::format("{}/{}", name_, role),
                      .op = std::move(op),
                      .inputs = std::move(inputs),
                      .attributes = std::move(attributes),
                      .types = std::move(types)}),
          0};
}

Value OnnxCall::reshape(Value x, Shape shape, std::string_view role) {
  Type type = graph_.type(x);
  if (type.shape == shape) return x;
  type.shape = std::move(shape);
  return add("reshape", {x}, {}, {type}, role);
}

Value OnnxCall::transpose(Value x, std::vector<std::int64_t> axes, std::string_view role) {
  bool is_identity = true;
  for (std::size_t i = 0; i < axes.size(); ++i)
    is_identity = is_identity && axes[i] == static_cast<std::int64_t>(i);
  if (is_identity) return x;
  return add("transpose", {x}, {{"axes", std::move(axes)}}, {}, role);
}

Value OnnxCall::cast(Value x, DType dtype) {
  Type type = graph_.type(x);
  if (type.dtype == dtype) return x;
  type.dtype = dtype;
  return add("cast", {x}, {}, {type}, std::string(name(dtype)));
}

Value OnnxCall::number(double value, DType dtype) {
  return add("constant", {}, {{"values", std::vector<double>{value}}},
             {{.dtype = dtype, .shape = {}}}, "number");
}

Value OnnxCall::array(const Tensor& tensor, std::string_view role) {
  Known made{.name = fmt::format("{}/{}", name_, role), .constant = tensor, .is_buffer = true};
  return materialize_(made);
}

Value OnnxCall::broadcast(Value x, const Shape& shape) {
  Type type = graph_.type(x);
  if (type.shape == shape) return x;
  type.shape = shape;
  return add("broadcast_to", {x}, {}, {type}, "broadcast");
}

void OnnxCall::give(Value value, std::size_t output) {
  give(Known{.value = value}, output);
}
void OnnxCall::give(Tensor constant, std::size_t output) {
  give(Known{.constant = std::move(constant)}, output);
}
void OnnxCall::give(SizeArray sizes, std::size_t output) {
  Known known;
  known.constant = constant_of(sizes);
  if (sizes.elements.size() == 1) known.affine = affine_of(sizes);
  known.sizes = std::move(sizes);
  give(std::move(known), output);
}
void OnnxCall::give(AffineArray array, std::size_t output) {
  give(Known{.affine = std::move(array)}, output);
}
void OnnxCall::give(Known known, std::size_t output) {
  if (output >= results_.size()) return;
  known.name = node_.outputs[output];
  results_[output] = std::move(known);
}

std::size_t axis_at(const OnnxCall& call, std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) call.refuse("axis {} of an array with {} axes", axis, rank);
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

}  // namespace lathe::io::onnx
