#include "lathe/train/loss_builder.h"

#include "lathe/core/scalar_constant.h"

namespace lathe::train {

Value LossBuilder::add(const std::string& name, const std::string& op, std::vector<Value> inputs,
                       Attributes attributes, std::vector<Type> types) {
  return {graph_.add({.name = name_ + "/" + name,
                      .op = op,
                      .inputs = std::move(inputs),
                      .attributes = std::move(attributes),
                      .types = std::move(types)}),
          0};
}

Value LossBuilder::times(const std::string& name, Value x, double factor) {
  const Value constant = add_scalar_constant(graph_, name_ + "/" + name + "/factor", factor);
  return add(name, "mul", {x, constant});
}

Value LossBuilder::sum(const std::string& name, const std::vector<Value>& terms) {
  Value total = kNone;
  for (const Value& term : terms) total = total.is_none() ? term : add(name, "add", {total, term});
  return total;
}

Value LossBuilder::input(const std::string& name, const Type& type) {
  if (const std::optional<NodeId> found = graph_.find(name)) return {*found, 0};
  return {graph_.add({.name = name, .op = "input", .inputs = {}, .types = {type}}), 0};
}

}  // namespace lathe::train
