#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lathe/core/op.h"

/// What select and its gradient share: one index of one axis.
namespace lathe::ops {

/// Axis and index.
std::vector<AttributeSpec> select_attributes();

/// Where the selected elements lie in what they are taken from; fails, in the name
/// of the op, where the axis has no such index.
std::vector<std::int64_t> selected_places(std::string_view op, const AttributeReader& attributes,
                                          const Tensor& whole, const Tensor& selected);

}  // namespace lathe::ops
