#include "lathe/io/onnx/onnx_writer.h"

#include "lathe/io/onnx/known.h"
#include "lathe/ops/evaluate_parameter.h"

namespace lathe::io::onnx {

std::optional<Tensor> ExportCall::parameter(std::size_t index) const {
  const Value value = operand(index);
  if (!graph_.is(value.node, "state") && !context_.parameters.contains(value.node))
    return std::nullopt;
  return evaluate(value);
}

Tensor ExportCall::evaluate(Value value) const {
  return ops::evaluate_parameter(graph_, context_.state, value);
}

std::string ExportCall::input(std::size_t index) {
  const Value value = operand(index);
  if (!names_.contains(value)) {
    const std::optional<Tensor> tensor = parameter(index);
    check(tensor.has_value(), "operands to be written before who reads them");
    names_[value] = free_name(value);
    target_.model.graph.initializers.emplace_back(names_.at(value), *tensor);
  }
  // Inputs have 64 bits in the file.
  if (graph_.is(value.node, "input") && graph_.type(value).dtype == DType::I32 &&
      !OnnxWriterRegistry::instance().at(graph_.op(node_).name, "op").takes_wide)
    return cast(names_.at(value), DType::I64, DType::I32);
  return names_.at(value);
}

std::vector<std::string> ExportCall::inputs() {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < graph_.inputs(node_).size(); ++i)
    result.push_back(has(i) ? input(i) : std::string());
  return result;
}

std::string ExportCall::unique(std::string_view role) {
  return fmt::format("{}/{}_{}", graph_.name(node_), role,
                     target_.model.graph.nodes.size() + target_.model.graph.initializers.size());
}

std::string ExportCall::free_name(Value value) {
  const std::string name = graph_.name(value);
  for (const auto& [taken, tensor] : target_.model.graph.initializers)
    if (taken == name) return unique("again");
  return name;
}

std::string ExportCall::add(std::string op, std::vector<std::string> inputs,
                            std::map<std::string, AttributeValue, std::less<>> attributes,
                            std::string_view role) {
  const std::string name = unique(role);
  target_.model.graph.nodes.push_back({.op = std::move(op),
                                       .name = name,
                                       .inputs = std::move(inputs),
                                       .outputs = {name},
                                       .attributes = std::move(attributes)});
  return name;
}

void ExportCall::give_node(std::string op, std::vector<std::string> inputs,
                           std::map<std::string, AttributeValue, std::less<>> attributes,
                           std::string domain) {
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < graph_.types(node_).size(); ++i) {
    outputs.push_back(graph_.name(Value{node_, static_cast<std::int32_t>(i)}));
    give(outputs.back(), i);
  }
  target_.model.graph.nodes.push_back({.op = std::move(op),
                                       .domain = std::move(domain),
                                       .name = graph_.name(node_),
                                       .inputs = std::move(inputs),
                                       .outputs = std::move(outputs),
                                       .attributes = std::move(attributes)});
}

std::string ExportCall::constant(Tensor tensor, std::string_view role) {
  const std::string name = unique(role);
  target_.model.graph.initializers.emplace_back(name, std::move(tensor));
  return name;
}

std::string ExportCall::number(double value, DType dtype) {
  const Tensor tensor = Tensor::from<double>({}, {value});
  return constant(tensor.converted(dtype), "number");
}

std::string ExportCall::integers(std::vector<std::int64_t> values) {
  return constant(Tensor::from<std::int64_t>({static_cast<std::int64_t>(values.size())},
                                             std::span<const std::int64_t>(values)),
                  "integers");
}

// The size of an axis that an input shows.
std::string ExportCall::symbol(const std::string& name) {
  for (const NodeId id : graph_.nodes_of("input")) {
    const Type& type = graph_.types(id)[0];
    for (std::size_t axis = 0; axis < type.rank(); ++axis) {
      if (type.shape[axis] != Size::symbol(name)) continue;
      const auto start = static_cast<std::int64_t>(axis);
      return add("Shape", {graph_.name(id)}, {{"start", start}, {"end", start + 1}}, "size");
    }
  }
  fail("the size {} is of no input's axis", name);
}

std::string ExportCall::shape(const Shape& shape) {
  std::vector<std::string> parts;
  std::vector<std::int64_t> known;
  const auto flush = [&] {
    if (!known.empty()) parts.push_back(integers(std::exchange(known, {})));
  };
  for (const Size& size : shape) {
    if (size.is_constant()) {
      known.push_back(size.constant());
      continue;
    }
    flush();
    std::string sum;
    for (const SizeTerm& term : terms_of(size)) {
      std::string product;
      Size rest = term.symbols;
      for (const std::string& name : rest.symbols()) {
        // A symbol may stand several times in a term.
        while (rest.depends_on(name)) {
          const std::optional<Size> quotient = exact_quotient(rest, Size::symbol(name));
          if (!quotient) fail("the size {} is not written in ONNX", size.text());
          rest = *quotient;
          const std::string factor = symbol(name);
          product = product.empty() ? factor : add("Mul", {product, factor});
        }
      }
      if (product.empty())
        product = integers({term.coefficient});
      else if (term.coefficient != 1)
        product = add("Mul", {product, integers({term.coefficient})});
      sum = sum.empty() ? product : add("Add", {sum, product});
    }
    parts.push_back(sum);
  }
  flush();
  if (parts.empty()) return integers({});
  if (parts.size() == 1) return parts[0];
  return add("Concat", parts, {{"axis", std::int64_t{0}}}, "shape");
}

std::string ExportCall::cast(const std::string& value, DType from, DType to) {
  if (from == to) return value;
  return add("Cast", {value}, {{"to", onnx_code(to)}}, "cast");
}

}  // namespace lathe::io::onnx
