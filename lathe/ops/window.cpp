#include "lathe/ops/window.h"

#include <algorithm>

#include "lathe/ops/operand_checks.h"

namespace lathe::ops {
namespace {

// Far beyond any real window or image, and small enough that no product of two overflows.
constexpr std::int64_t kMost = std::int64_t{1} << 24;
constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;

template <std::size_t kCount>
void read(std::string_view op, std::string_view name, const std::vector<std::int64_t>& values,
          std::int64_t least, std::int64_t (&target)[kCount]) {
  if (values.size() != kCount)
    fail("{}: {}={} must have {} numbers", op, name, to_text(Attribute(values)), kCount);
  for (const std::int64_t value : values)
    if (value < least || value > kMost)
      fail("{}: {}={} must be numbers from {} to {}", op, name, to_text(Attribute(values)), least,
           kMost);
  std::copy(values.begin(), values.end(), target);
}

}  // namespace

std::int64_t Window::num_places(int axis, std::int64_t size) const {
  const std::int64_t reach = (kernel[axis] - 1) * dilations[axis] + 1;
  const std::int64_t room = size + pads[axis] + pads[axis + 2] - reach;
  return room < 0 ? 0 : room / strides[axis] + 1;
}

Window read_window(std::string_view op, std::int64_t height, std::int64_t width,
                   const AttributeReader& attributes, bool has_dilations) {
  Window window{};
  read(op, "kernel", {height, width}, 1, window.kernel);
  std::vector<std::int64_t> strides = attributes.integers("strides");
  if (strides.empty()) strides = {height, width};
  read(op, "strides", strides, 1, window.strides);
  read(op, "pads", attributes.integers("pads"), 0, window.pads);
  if (has_dilations) read(op, "dilations", attributes.integers("dilations"), 1, window.dilations);
  return window;
}

Type slide_window(std::string_view op, const Type& x, const Size& channels, const Window& window) {
  const auto num_places = [&](int axis) {
    const std::int64_t size = constant_size(op, x.axis(axis + 2), x);
    if (size > kMostPixels)
      fail("{}: {}: an axis may be at most {} long", op, to_text(x), kMostPixels);
    return window.num_places(axis, size);
  };
  const std::int64_t height = num_places(0), width = num_places(1);
  if (height == 0 || width == 0)
    fail("{}: {} is smaller than the {}x{} window", op, to_text(x), window.kernel[0],
         window.kernel[1]);
  return {.dtype = x.dtype, .shape = {x.axis(0), channels, height, width}};
}

}  // namespace lathe::ops
