#pragma once

#include <string_view>
#include <vector>

#include "lathe/core/op.h"

/// What the shape rules of optimizers share.
namespace lathe::ops {

/// The types of the updated operands: operand 0 (the parameter) and `num_moments` operands from 2
/// on. Fails unless these and the gradient, operand 1, have one shape, and the learning rate and
/// the scale, which follow, are numbers.
std::vector<Type> updated_types(std::string_view op, const OpCall& call, std::size_t num_moments);

}  // namespace lathe::ops
