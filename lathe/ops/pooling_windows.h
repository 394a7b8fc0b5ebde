#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lathe/ops/window.h"

/// What pooling and its gradients share: attributes, and which elements lie under which window.
namespace lathe::ops {

/// `kernel`, `strides` and `pads`.
std::vector<AttributeSpec> pooling_attributes();
/// The window of a pooling op; fails unless it holds an element wherever it stands.
Window pooling_window(std::string_view op, const AttributeReader& attributes);
/// Visits the window of each element of y with the indices of the elements of x under it, padding
/// left out.
void for_each_window(
    std::string_view op, const Tensor& x, const Tensor& y, const AttributeReader& attributes,
    const std::function<void(std::size_t output, std::span<const std::size_t> inputs)>& visit);
/// What avg_pool2d divides the sum of this many elements by.
double average_divisor(const AttributeReader& attributes, std::size_t num_inputs);

}  // namespace lathe::ops
