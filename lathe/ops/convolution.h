#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lathe/core/op.h"

/// What convolution and its two gradients share: attributes, the shape rule, and which elements
/// meet.
namespace lathe::ops {

std::vector<AttributeSpec> conv2d_attributes();
/// The type of the result of convolving `x` with `weight`; fails when they do not fit.
Type conv2d_type(const Type& x, const Type& weight, const AttributeReader& attributes);

/// Visits every product weight[tap] * x[input] that is summed into y[output], by index; those with
/// padding are left out.
void for_each_product(
    const Tensor& x, const Tensor& weight, const Tensor& y, const AttributeReader& attributes,
    const std::function<void(std::size_t output, std::size_t input, std::size_t tap)>& visit);

}  // namespace lathe::ops
