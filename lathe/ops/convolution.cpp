#include "lathe/ops/convolution.h"

#include "lathe/ops/operand_checks.h"
#include "lathe/ops/window.h"

namespace lathe::ops {

std::vector<AttributeSpec> conv2d_attributes() {
  return {{.name = "strides",
           .default_value = std::vector<std::int64_t>{1, 1},
           .summary = "steps down and to the right"},
          {.name = "pads",
           .default_value = std::vector<std::int64_t>{0, 0, 0, 0},
           .summary = "rows or columns of zeros: top, left, bottom, right"},
          {.name = "dilations",
           .default_value = std::vector<std::int64_t>{1, 1},
           .summary = "distances between elements of the window"},
          {.name = "groups",
           .default_value = 1,
           .summary = "channels and filters are divided into this many groups"}};
}

Type conv2d_type(const Type& x, const Type& weight, const AttributeReader& attributes) {
  require_rank("conv2d", "x", x, 4);
  require_rank("conv2d", "weight", weight, 4);
  const std::int64_t groups = attributes.integer("groups");
  const std::int64_t channels = constant_size("conv2d", x.axis(1), x);
  const std::int64_t filters = constant_size("conv2d", weight.axis(0), weight);
  if (groups < 1 || channels % groups != 0 || filters % groups != 0)
    fail("conv2d: {} channels and {} filters do not divide into {} groups", channels, filters,
         groups);
  if (weight.axis(1) != Size(channels / groups))
    fail("cannot convolve {} with weight {}: {} channels a group and {} differ", to_text(x),
         to_text(weight), channels / groups, weight.axis(1).text());
  const Window window =
      read_window("conv2d", constant_size("conv2d", weight.axis(2), weight),
                  constant_size("conv2d", weight.axis(3), weight), attributes, true);
  return slide_window("conv2d", x, weight.axis(0), window);
}

void for_each_product(const Tensor& x, const Tensor& weight, const Tensor& y,
                      const AttributeReader& attributes,
                      const std::function<void(std::size_t, std::size_t, std::size_t)>& visit) {
  const Window window = read_window("conv2d", weight.dim(2), weight.dim(3), attributes, true);
  const std::int64_t in_group = weight.dim(1);
  const std::int64_t out_group = weight.dim(0) / attributes.integer("groups");
  const std::int64_t height = x.dim(2), width = x.dim(3);

  const auto one_output = [&](std::int64_t n, std::int64_t o, std::int64_t i, std::int64_t j) {
    const std::int64_t output = ((n * y.dim(1) + o) * y.dim(2) + i) * y.dim(3) + j;
    for (std::int64_t c = 0; c < in_group; ++c) {
      const std::int64_t plane = n * x.dim(1) + o / out_group * in_group + c;
      for (std::int64_t p = 0; p < window.kernel[0]; ++p) {
        const std::int64_t row = window.position(0, i, p);
        if (row < 0 || row >= height) continue;
        for (std::int64_t q = 0; q < window.kernel[1]; ++q) {
          const std::int64_t column = window.position(1, j, q);
          if (column < 0 || column >= width) continue;
          const std::int64_t tap =
              ((o * in_group + c) * window.kernel[0] + p) * window.kernel[1] + q;
          visit(static_cast<std::size_t>(output),
                static_cast<std::size_t>((plane * height + row) * width + column),
                static_cast<std::size_t>(tap));
        }
      }
    }
  };

  for (std::int64_t n = 0; n < y.dim(0); ++n)
    for (std::int64_t o = 0; o < y.dim(1); ++o)
      for (std::int64_t i = 0; i < y.dim(2); ++i)
        for (std::int64_t j = 0; j < y.dim(3); ++j) one_output(n, o, i, j);
}

}  // namespace lathe::ops
