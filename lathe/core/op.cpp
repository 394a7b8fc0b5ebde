#include "lathe/core/op.h"

namespace lathe {

OpCall::OpCall(const Op& op, std::vector<const Type*> inputs, const Attributes& attributes,
               std::span<const Type> declared)
    : inputs_(std::move(inputs)), attributes_(attributes, op.attributes), declared_(declared) {}

const Type& OpCall::input(std::size_t index) const {
  check(has(index), "an operand that is there");
  return *inputs_[index];
}

}  // namespace lathe
