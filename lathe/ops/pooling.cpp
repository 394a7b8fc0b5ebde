#include <algorithm>
#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/window.h"

// max_pool2d and avg_pool2d(x[N,C,H,W]) {kernel, strides, pads}: the largest element or the mean of
// each window. Padding is never the largest; the mean counts it as zeros, or leaves it out when
// count_include_pad is false. Windows that do not fit are left out (no ceiling mode).
namespace lathe::ops {
namespace {

Window window_of(std::string_view op, const AttributeReader& attributes) {
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

std::vector<Type> infer(std::string_view op, const OpCall& call) {
  require_floating(op, call, 0);
  const Type& x = call.input(0);
  require_rank(op, "x", x, 4);
  return {slide_window(op, x, x.axis(1), window_of(op, call.attributes()))};
}

Size flops(std::string_view op, const OpCall& call) {
  const Window window = window_of(op, call.attributes());
  return infer(op, call)[0].num_elements() * Size(window.kernel[0] * window.kernel[1]);
}

// The elements of x under the window at (i, j), padding left out.
std::vector<double> elements_under(const Window& window, std::span<const double> plane,
                                   std::int64_t height, std::int64_t width, std::int64_t i,
                                   std::int64_t j) {
  std::vector<double> result;
  for (std::int64_t p = 0; p < window.kernel[0]; ++p) {
    for (std::int64_t q = 0; q < window.kernel[1]; ++q) {
      const std::int64_t row = window.position(0, i, p);
      const std::int64_t column = window.position(1, j, q);
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      result.push_back(plane[static_cast<std::size_t>(row * width + column)]);
    }
  }
  return result;
}

template <typename Pool>
void reference(std::string_view op, const KernelCall& call, Pool pool) {
  const Tensor& x = call.input(0);
  const Tensor& y = call.outputs[0];
  const std::vector<double> input = read_elements(x);
  const Window window = window_of(op, call.attributes);
  const std::int64_t height = x.dim(2), width = x.dim(3);
  std::vector<double> values;
  for (std::int64_t plane = 0; plane < x.dim(0) * x.dim(1); ++plane) {
    const std::span<const double> elements(input.data() + plane * height * width,
                                           static_cast<std::size_t>(height * width));
    for (std::int64_t i = 0; i < y.dim(2); ++i)
      for (std::int64_t j = 0; j < y.dim(3); ++j)
        values.push_back(pool(window, elements_under(window, elements, height, width, i, j)));
  }
  write_elements(call.outputs[0], values);
}

void max_reference(const KernelCall& call) {
  reference("max_pool2d", call, [](const Window&, const std::vector<double>& elements) {
    double highest = -std::numeric_limits<double>::infinity();
    for (const double value : elements)
      highest = highest != highest || highest > value ? highest : value;  // NaN stays
    return highest;
  });
}

void average_reference(const KernelCall& call) {
  const bool include_pad = call.attributes.flag("count_include_pad");
  reference("avg_pool2d", call, [&](const Window& window, const std::vector<double>& elements) {
    double sum = 0;
    for (const double value : elements) sum += value;
    const double area = static_cast<double>(window.kernel[0] * window.kernel[1]);
    return sum / (include_pad ? area : static_cast<double>(elements.size()));
  });
}

Op pooling_op(const std::string& name, const std::string& summary,
              void (*reference_kernel)(const KernelCall&)) {
  return {
      .name = name,
      .summary = summary,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "kernel",
                      .default_value = std::vector<std::int64_t>{},
                      .summary = "height and width of the window",
                      .required = true},
                     {.name = "strides",
                      .default_value = std::vector<std::int64_t>{},
                      .summary = "steps down and to the right; none: the size of the window"},
                     {.name = "pads",
                      .default_value = std::vector<std::int64_t>{0, 0, 0, 0},
                      .summary = "rows or columns of padding: top, left, bottom, right"}},
      .infer = [name](const OpCall& call) { return infer(name, call); },
      .flops = [name](const OpCall& call) { return flops(name, call); },
      .reference = reference_kernel,
      .examples = {name + "(f32[B,2,6,6]) {kernel=[2,2]}",
                   name + "(f32[1,2,5,5]) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1]}"},
  };
}

Op average_pooling() {
  Op op = pooling_op("avg_pool2d", "the mean of each window", average_reference);
  op.attributes.push_back({.name = "count_include_pad",
                           .default_value = true,
                           .summary = "whether padding counts as zeros in the mean"});
  op.examples.push_back(
      "avg_pool2d(f32[1,1,3,3]) {kernel=[2,2], pads=[1,1,0,0], count_include_pad=false}");
  return op;
}

const Register max_pool2d{
    pooling_op("max_pool2d", "the largest element of each window", max_reference)};
const Register avg_pool2d{average_pooling()};

}  // namespace
}  // namespace lathe::ops
