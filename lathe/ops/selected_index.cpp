#include "lathe/ops/selected_index.h"

#include "lathe/core/error.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"

namespace lathe::ops {

std::vector<AttributeSpec> select_attributes() {
  return {{.name = "axis", .default_value = 0, .summary = "the axis", .required = true},
          {.name = "index",
           .default_value = 0,
           .summary = "the index; negative ones count from the end",
           .required = true}};
}

std::vector<std::int64_t> selected_places(std::string_view op, const AttributeReader& attributes,
                                          const Tensor& whole, const Tensor& selected) {
  const std::size_t axis = axis_position(attributes.integer("axis"), whole.rank());
  std::int64_t index = attributes.integer("index");
  if (index < 0) index += whole.dim(axis);
  if (index < 0 || index >= whole.dim(axis))
    fail("{}: axis {} of size {} has no index {}", op, axis, whole.dim(axis),
         attributes.integer("index"));
  std::vector<std::int64_t> strides = row_major_strides(whole.dims());
  const std::int64_t offset = index * strides[axis];
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  return strided_indices(selected.dims(), strides, offset);
}

}  // namespace lathe::ops
