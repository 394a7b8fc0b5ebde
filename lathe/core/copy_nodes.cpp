#include "lathe/core/copy_nodes.h"

namespace lathe {

Value NodeCopier::at(Value value) const {
  if (value.is_none()) return kNone;
  const auto found = copies_.find(value);
  check(found != copies_.end(), "operands to be copied before their readers");
  return found->second;
}

NodeId NodeCopier::copy(NodeId node, std::string name) {
  NodeSpec spec{.name = std::move(name), .op = from_.op(node).name, .inputs = {}};
  for (const Value& value : from_.inputs(node)) spec.inputs.push_back(at(value));
  spec.attributes = from_.attributes(node);
  spec.types = from_.types(node);
  const NodeId copy = to_.add(std::move(spec));
  for (std::size_t i = 0; i < from_.types(node).size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    map({node, index}, {copy, index});
  }
  return copy;
}

}  // namespace lathe
