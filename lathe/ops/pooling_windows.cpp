#include "lathe/ops/pooling_windows.h"

namespace lathe::ops {

std::vector<AttributeSpec> pooling_attributes() {
  return {{.name = "kernel",
           .default_value = std::vector<std::int64_t>{},
           .summary = "height and width of the window",
           .required = true},
          {.name = "strides",
           .default_value = std::vector<std::int64_t>{},
           .summary = "steps down and to the right; none: the size of the window"},
          {.name = "pads",
           .default_value = std::vector<std::int64_t>{0, 0, 0, 0},
           .summary = "rows or columns of padding: top, left, bottom, right"}};
}

Window pooling_window(std::string_view op, const AttributeReader& attributes) {
  const std::vector<std::int64_t>& kernel = attributes.integers("kernel");
  if (kernel.size() != 2) fail("{}: kernel={} must have 2 numbers", op, to_text(Attribute(kernel)));
  const Window window = read_window(op, kernel[0], kernel[1], attributes, false);
  // Then every window holds at least one element that is not padding.
  for (int side = 0; side < 4; ++side)
    if (window.pads[side] >= window.kernel[side % 2])
      fail("{}: padding {} must be smaller than the {}x{} kernel", op, window.pads[side], kernel[0],
           kernel[1]);
  return window;
}

void for_each_window(std::string_view op, const Tensor& x, const Tensor& y,
                     const AttributeReader& attributes,
                     const std::function<void(std::size_t, std::span<const std::size_t>)>& visit) {
  const Window window = pooling_window(op, attributes);
  const std::int64_t height = x.dim(2), width = x.dim(3);
  std::vector<std::size_t> inputs;
  std::size_t output = 0;
  for (std::int64_t plane = 0; plane < x.dim(0) * x.dim(1); ++plane) {
    for (std::int64_t i = 0; i < y.dim(2); ++i) {
      for (std::int64_t j = 0; j < y.dim(3); ++j) {
        inputs.clear();
        for (std::int64_t p = 0; p < window.kernel[0]; ++p) {
          for (std::int64_t q = 0; q < window.kernel[1]; ++q) {
            const std::int64_t row = window.position(0, i, p);
            const std::int64_t column = window.position(1, j, q);
            if (row < 0 || row >= height || column < 0 || column >= width) continue;
            inputs.push_back(static_cast<std::size_t>((plane * height + row) * width + column));
          }
        }
        visit(output++, inputs);
      }
    }
  }
}

double average_divisor(const AttributeReader& attributes, std::size_t num_inputs) {
  const std::vector<std::int64_t>& kernel = attributes.integers("kernel");
  return attributes.flag("count_include_pad") ? static_cast<double>(kernel[0] * kernel[1])
                                              : static_cast<double>(num_inputs);
}

}  // namespace lathe::ops
