#include "lathe/hardware/mapping/image_windows.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::hardware {

const MappedValue& image_operand(const GraphMapper& mapper, NodeId node) {
  const MappedValue& x = mapper.operand(node, 0);
  const Stream& type = mapper.type(x);
  if (x.dims.size() != 3 || type.size != x.dims[0] || type.vectors != x.dims[1] * x.dims[2])
    fail("x does not come pixel by pixel");
  return x;
}

StreamId add_windows(GraphMapper& mapper, NodeId node, const ops::Window& window, int lanes,
                     std::int64_t outside) {
  const MappedValue& x = image_operand(mapper, node);
  if (window.dilations[0] != 1 || window.dilations[1] != 1)
    fail("a window of dilation {}x{}, and expected 1x1", window.dilations[0], window.dilations[1]);
  const std::int64_t height = x.dims[1], columns = x.dims[2];
  const StreamId pixels = mapper.read(node, 0, lanes);
  const auto is = [](const auto& values, std::int64_t wanted) {
    return std::ranges::all_of(values, [&](std::int64_t value) { return value == wanted; });
  };
  if (is(window.kernel, 1) && is(window.strides, 1) && is(window.pads, 0)) return pixels;
  const StreamId result = mapper.netlist.add_single({.name = mapper.new_name(node) + ".window",
                                                     .block = "sliding_window",
                                                     .parameters = {{"height", height},
                                                                    {"columns", columns},
                                                                    {"kernel_h", window.kernel[0]},
                                                                    {"kernel_w", window.kernel[1]},
                                                                    {"stride_h", window.strides[0]},
                                                                    {"stride_w", window.strides[1]},
                                                                    {"top", window.pads[0]},
                                                                    {"left", window.pads[1]},
                                                                    {"bottom", window.pads[2]},
                                                                    {"right", window.pads[3]},
                                                                    {"pad", outside}},
                                                     .inputs = {pixels}});
  mapper.claim(node);
  return result;
}

MappedValue mapped_image(StreamId stream, std::vector<std::int64_t> dims) {
  MappedValue result{.stream = stream, .dims = std::move(dims)};
  const std::int64_t channels = result.dims[0], pixels = result.dims[1] * result.dims[2];
  result.order.reserve(static_cast<std::size_t>(channels * pixels));
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
    for (std::int64_t channel = 0; channel < channels; ++channel)
      result.order.push_back(channel * pixels + pixel);
  return result;
}

}  // namespace lathe::hardware
