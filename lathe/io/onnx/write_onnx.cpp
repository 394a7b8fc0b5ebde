#include <limits>

#include "lathe/io/onnx/onnx_model.h"
#include "lathe/io/onnx/wire.pb.h"

namespace lathe::io::onnx {
namespace {

// The kinds of attribute, as ONNX numbers them.
enum WrittenKind { kReal = 1, kInteger, kText, kTensor, kGraph, kReals, kIntegers, kTexts };

void write_tensor(const std::string& name, const Tensor& tensor, wire::Tensor& target) {
  target.set_name(name);
  target.set_data_type(static_cast<std::int32_t>(onnx_code(tensor.dtype())));
  for (const std::int64_t size : tensor.dims()) target.add_dims(size);
  target.set_raw_data(tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes()));
}

struct AttributeWriter {
  wire::Attribute& target;
  void operator()(std::int64_t value) const {
    target.set_type(kInteger);
    target.set_i(value);
  }
  void operator()(double value) const {
    target.set_type(kReal);
    target.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    target.set_type(kText);
    target.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    target.set_type(kIntegers);
    for (const std::int64_t value : values) target.add_ints(value);
  }
  void operator()(const std::vector<double>& values) const {
    target.set_type(kReals);
    for (const double value : values) target.add_floats(static_cast<float>(value));
  }
  void operator()(const std::vector<std::string>& values) const {
    target.set_type(kTexts);
    for (const std::string& value : values) target.add_strings(value);
  }
  void operator()(const Tensor& value) const {
    target.set_type(kTensor);
    write_tensor("", value, *target.mutable_t());
  }
  void operator()(const Subgraph&) const { check(false, "no control flow to be written"); }
};

void write_node(const OnnxNode& node, wire::Node& target) {
  for (const std::string& input : node.inputs) target.add_input(input);
  for (const std::string& output : node.outputs) target.add_output(output);
  target.set_name(node.name);
  target.set_op_type(node.op);
  if (!node.domain.empty()) target.set_domain(node.domain);
  for (const auto& [name, value] : node.attributes) {
    wire::Attribute& attribute = *target.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
}

void write_value(const OnnxValue& value, wire::ValueInfo& target) {
  target.set_name(value.name);
  wire::TensorType& type = *target.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<std::int32_t>(onnx_code(value.dtype)));
  if (!value.has_shape) return;
  wire::Shape& shape = *type.mutable_shape();
  for (const OnnxSize& size : value.shape) {
    wire::Dimension& axis = *shape.add_dim();
    if (size.number)
      axis.set_dim_value(*size.number);
    else if (!size.name.empty())
      axis.set_dim_param(size.name);
  }
}

}  // namespace

std::string serialize_onnx(const OnnxModel& model) {
  wire::Model message;
  message.set_ir_version(model.ir_version);
  message.set_producer_name(model.producer);
  for (const auto& [domain, version] : model.opsets) {
    wire::OperatorSet& set = *message.add_opset_import();
    set.set_domain(domain);
    set.set_version(version);
  }
  for (const auto& [key, value] : model.metadata) {
    wire::KeyValue& entry = *message.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  wire::Graph& graph = *message.mutable_graph();
  graph.set_name(model.graph.name);
  for (const OnnxNode& node : model.graph.nodes) write_node(node, *graph.add_node());
  for (const auto& [name, tensor] : model.graph.initializers)
    write_tensor(name, tensor, *graph.add_initializer());
  for (const OnnxValue& input : model.graph.inputs) write_value(input, *graph.add_input());
  for (const OnnxValue& output : model.graph.outputs) write_value(output, *graph.add_output());
  if (message.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fail("an ONNX file of {} bytes: it can have at most 2 GiB", message.ByteSizeLong());
  return message.SerializeAsString();
}

}  // namespace lathe::io::onnx
