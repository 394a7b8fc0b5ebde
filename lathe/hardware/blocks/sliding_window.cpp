#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// A frame of the input is an image: height * columns vectors of its channels. The output has, for
// each of out_h * out_w windows, kernel_h * kernel_w such vectors.
namespace lathe::hardware::sliding_window {
namespace {

struct Shape {
  std::int64_t height, columns, kernel_h, kernel_w, stride_h, stride_w, top, left, bottom, right;

  std::int64_t out_h() const { return (height + top + bottom - kernel_h) / stride_h + 1; }
  std::int64_t out_w() const { return (columns + left + right - kernel_w) / stride_w + 1; }
  // The window's rows and those that come in while it passes.
  std::int64_t rows() const { return std::min(height, kernel_h + stride_h); }
};

Shape shape_of(const BlockCall& call) {
  const Shape shape{.height = call.parameter("height"),
                    .columns = call.parameter("columns"),
                    .kernel_h = call.parameter("kernel_h"),
                    .kernel_w = call.parameter("kernel_w"),
                    .stride_h = call.parameter("stride_h"),
                    .stride_w = call.parameter("stride_w"),
                    .top = call.parameter("top"),
                    .left = call.parameter("left"),
                    .bottom = call.parameter("bottom"),
                    .right = call.parameter("right")};
  if (shape.height * shape.columns != call.inputs[0].vectors)
    fail("an image of {} x {} pixels is not {} vectors", shape.height, shape.columns,
         call.inputs[0].vectors);
  if (shape.stride_h < 1 || shape.stride_w < 1) fail("strides must be at least 1");
  if (shape.top < 0 || shape.left < 0 || shape.bottom < 0 || shape.right < 0)
    fail("padding must not be negative");
  if (shape.kernel_h < 1 || shape.kernel_w < 1 ||
      shape.kernel_h > shape.height + shape.top + shape.bottom ||
      shape.kernel_w > shape.columns + shape.left + shape.right)
    fail("a window of {} x {} does not fit", shape.kernel_h, shape.kernel_w);
  if (shape.top >= shape.kernel_h || shape.left >= shape.kernel_w ||
      shape.bottom >= shape.kernel_h || shape.right >= shape.kernel_w)
    fail("padding as large as the window");
  return shape;
}

// Calls with (output row, row, column) for each pixel under each window, in their order.
template <typename Visit>
void for_each_tap(const Shape& shape, Visit visit) {
  for (std::int64_t y = 0; y < shape.out_h(); ++y)
    for (std::int64_t x = 0; x < shape.out_w(); ++x)
      for (std::int64_t ky = 0; ky < shape.kernel_h; ++ky)
        for (std::int64_t kx = 0; kx < shape.kernel_w; ++kx) {
          const std::int64_t row = y * shape.stride_h - shape.top + ky;
          const std::int64_t column = x * shape.stride_w - shape.left + kx;
          visit(row, column,
                row >= 0 && row < shape.height && column >= 0 && column < shape.columns);
        }
}

std::vector<Stream> infer(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const std::int64_t pad = call.parameter("pad");
  const Stream& input = call.inputs[0];
  if (pad < input.element.lowest() || pad > input.element.highest() || pad < INT32_MIN ||
      pad > INT32_MAX)
    fail("pad {} is no {}", pad, input.element.text());
  Stream result = input;
  result.vectors = shape.out_h() * shape.out_w() * shape.kernel_h * shape.kernel_w;
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Shape shape = shape_of(call);
  const std::int64_t channels = call.inputs[0].size, pad = call.parameter("pad");
  const std::int64_t image = call.inputs[0].num_elements();
  Values result;
  for (std::int64_t frame = 0; frame < static_cast<std::int64_t>(inputs[0].size()); frame += image)
    for_each_tap(shape, [&](std::int64_t row, std::int64_t column, bool is_inside) {
      for (std::int64_t c = 0; c < channels; ++c)
        result.push_back(is_inside ? inputs[0][static_cast<std::size_t>(
                                         frame + (row * shape.columns + column) * channels + c)]
                                   : pad);
    });
  return {result};
}

Timing timing(const BlockCall& call) {
  const Shape shape = shape_of(call);
  const std::int64_t channels = call.inputs[0].beats_per_vector();
  BufferTiming result{.need = {}, .free = {}, .frees_at_once = false, .stages = 1};
  for_each_tap(shape, [&](std::int64_t row, std::int64_t column, bool is_inside) {
    for (std::int64_t c = 0; c < channels; ++c)
      result.need.push_back(is_inside ? (row * shape.columns + column) * channels + c + 1 : 1);
  });
  // A row takes the place of the one `rows` before it, once no output row needs that any more; the
  // first ones that of the image before.
  const std::int64_t per_row =
      shape.out_w() * shape.kernel_h * shape.kernel_w * channels;  // outputs
  const auto outputs_before = [&](std::int64_t gone) {  // until rows up to `gone` are not needed
    if (gone < 0) return std::int64_t{0};
    for (std::int64_t y = 0; y < shape.out_h(); ++y)
      if (std::max<std::int64_t>(0, y * shape.stride_h - shape.top) > gone) return y * per_row;
    return shape.out_h() * per_row;
  };
  const std::int64_t all = shape.out_h() * per_row;
  for (std::int64_t row = 0; row < shape.height; ++row) {
    const std::int64_t gone = row - shape.rows();
    const std::int64_t free =
        gone >= 0 ? outputs_before(gone) : outputs_before(gone + shape.height) - all;
    for (std::int64_t i = 0; i < shape.columns * channels; ++i) result.free.push_back(free);
  }
  return result;
}

std::int64_t words(const BlockCall& call, const Shape& shape) {
  return shape.rows() * shape.columns * call.inputs[0].beats_per_vector();
}

const Register registration{Block{
    .name = "sliding_window",
    .summary = "the pixels under a window that moves over an image",
    .parameters = {{.name = "height", .summary = "rows of the image"},
                   {.name = "columns", .summary = "columns of the image"},
                   {.name = "kernel_h", .summary = "rows of the window"},
                   {.name = "kernel_w", .summary = "columns of the window"},
                   {.name = "stride_h", .default_value = 1, .summary = "rows from one to the next"},
                   {.name = "stride_w",
                    .default_value = 1,
                    .summary = "columns from one to the next"},
                   {.name = "top", .default_value = 0, .summary = "rows of padding above"},
                   {.name = "left", .default_value = 0, .summary = "columns of padding before"},
                   {.name = "bottom", .default_value = 0, .summary = "rows of padding below"},
                   {.name = "right", .default_value = 0, .summary = "columns of padding behind"},
                   {.name = "pad", .default_value = 0, .summary = "what padding holds"}},
    .parts = {"ram"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = [](const BlockCall& call) -> Resources {
      const std::int64_t depth = words(call, shape_of(call)), width = call.inputs[0].bits();
      if (!is_block_memory(width, depth)) return {};
      return {.bram18 = bram18_of_memory(width, depth, MemoryUse::Written)};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      const Shape shape = shape_of(call);
      return {.integers = {
                  {"WIDTH", call.inputs[0].bits()},
                  {"CHANNELS", call.inputs[0].beats_per_vector()},
                  {"HEIGHT", shape.height},
                  {"COLUMNS", shape.columns},
                  {"KERNEL_H", shape.kernel_h},
                  {"KERNEL_W", shape.kernel_w},
                  {"STRIDE_H", shape.stride_h},
                  {"STRIDE_W", shape.stride_w},
                  {"TOP", shape.top},
                  {"LEFT", shape.left},
                  {"OUT_H", shape.out_h()},
                  {"OUT_W", shape.out_w()},
                  {"ROWS", shape.rows()},
                  {"ELEMENT", call.inputs[0].element.width},
                  {"PAD", call.parameter("pad")},
                  {"BLOCK", is_block_memory(call.inputs[0].bits(), words(call, shape)) ? 1 : 0}}};
    },
    .describe =
        [](const BlockCall& call) {
          const Shape shape = shape_of(call);
          return fmt::format("{} x {} windows of {} x {} pixels, {} channels of {}", shape.out_h(),
                             shape.out_w(), shape.kernel_h, shape.kernel_w, call.inputs[0].size,
                             call.inputs[0].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::sliding_window
