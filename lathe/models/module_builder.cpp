#include "lathe/models/module_builder.h"

#include <cmath>

namespace lathe::models {
namespace {

// Below zero a root would be of negative numbers, and every answer none.
void check_epsilon(const std::string& norm, double eps) {
  if (!(eps >= 0) || std::isinf(eps))
    fail("the epsilon of {} is {}: expected 0 or more", norm, eps);
}

}  // namespace

Value ModuleBuilder::input(const std::string& name, Type type) {
  return {graph_.add({.name = name, .op = "input", .inputs = {}, .types = {std::move(type)}}), 0};
}

Value ModuleBuilder::state(const std::string& name, Shape shape, std::string init, double scale) {
  if (const std::optional<NodeId> existing = graph_.find(name)) return {*existing, 0};
  Attributes attributes{{"init", init}};
  if (init == "normal") attributes["scale"] = initializer_range_.value();
  if (init == "uniform") attributes["scale"] = scale;
  return {graph_.add({.name = name,
                      .op = "state",
                      .inputs = {},
                      .attributes = std::move(attributes),
                      .types = {{DType::F32, std::move(shape)}}}),
          0};
}

Value ModuleBuilder::add(std::string name, std::string op, std::vector<Value> inputs,
                         Attributes attributes) {
  return {graph_.add({.name = std::move(name),
                      .op = std::move(op),
                      .inputs = std::move(inputs),
                      .attributes = std::move(attributes)}),
          0};
}

Value ModuleBuilder::linear(const std::string& name, Value x, std::int64_t outputs, bool has_bias) {
  const Size inputs = graph_.type(x).axis(-1);
  const bool is_uniform = !initializer_range_;
  const double bound = is_uniform ? 1 / std::sqrt(static_cast<double>(inputs.constant())) : 0;
  std::vector<Value> operands{
      x, state(name + ".weight", {outputs, inputs}, is_uniform ? "uniform" : "normal", bound)};
  if (has_bias)
    operands.push_back(state(name + ".bias", {outputs}, is_uniform ? "uniform" : "zeros", bound));
  return add(name, "linear", std::move(operands));
}

Value ModuleBuilder::embedding(const std::string& name, Value ids, std::int64_t rows,
                               std::int64_t width) {
  return add(name, "embedding", {ids, state(name + ".weight", {rows, width}, "normal")});
}

Value ModuleBuilder::layer_norm(const std::string& name, Value x, double eps) {
  check_epsilon(name, eps);
  const Size width = graph_.type(x).axis(-1);
  const Value weight = state(name + ".weight", {width}, "ones");
  const Value bias = state(name + ".bias", {width}, "zeros");
  return add(name, "layer_norm", {x, weight, bias}, {{"eps", eps}});
}

Value ModuleBuilder::rms_norm(const std::string& name, Value x, double eps) {
  check_epsilon(name, eps);
  const Value weight = state(name + ".weight", {graph_.type(x).axis(-1)}, "ones");
  return add(name, "rms_norm", {x, weight}, {{"eps", eps}});
}

Value ModuleBuilder::batch_norm(const std::string& name, Value x, double eps) {
  check_epsilon(name, eps);
  const Size channels = graph_.type(x).axis(1);
  std::vector<Value> operands{x};
  for (const auto& [part, init] : {std::pair(".weight", "ones"), {".bias", "zeros"}})
    operands.push_back(state(name + part, {channels}, init));
  for (const auto& [part, init] : {std::pair(".running_mean", "zeros"), {".running_var", "ones"}}) {
    operands.push_back(state(name + part, {channels}, init));
    graph_.set_attribute(operands.back().node, "role", std::string("buffer"));
  }
  return add(name, "batch_norm", std::move(operands), {{"eps", eps}});
}

Value ModuleBuilder::activation(const std::string& name, std::string_view key,
                                const std::string& function, Value x) {
  if (function == "gelu") return add(name, "gelu", {x});
  if (function == "gelu_new" || function == "gelu_pytorch_tanh" || function == "gelu_fast")
    return add(name, "gelu", {x}, {{"approximate", std::string("tanh")}});
  if (function == "quick_gelu" || function == "relu" || function == "silu" || function == "tanh")
    return add(name, function, {x});
  if (function == "swish") return add(name, "silu", {x});
  throw unknown_name(key, function,
                     {"gelu", "gelu_fast", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu",
                      "silu", "swish", "tanh"});
}

Value ModuleBuilder::dropout(const std::string& name, Value x, double rate) {
  return add(name, "dropout", {x}, {{"rate", rate}, {"site", next_site()}});
}

}  // namespace lathe::models
