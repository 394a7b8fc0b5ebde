#include <algorithm>
#include <cmath>

#include "lathe/io/onnx/onnx_op.h"

// Ops that slide windows over pixels: convolutions and pooling. Ours are of images, [N,C,H,W]; rows
// of one dimension are images of height 1.
namespace lathe::io::onnx::windows {
namespace {

// The window of a node, for height and width.
struct Window {
  std::vector<std::int64_t> kernel, strides, dilations, pads;  ///< pads: top, left, bottom, right
};

// Lists of one dimension get one for a height of 1.
std::vector<std::int64_t> two(OnnxCall& call, std::vector<std::int64_t> list, std::int64_t lone,
                              std::size_t dimensions) {
  if (list.size() != dimensions) call.refuse("{} numbers for {} axes", list.size(), dimensions);
  if (dimensions == 1) list.insert(list.begin(), lone);
  return list;
}

std::size_t spatial_rank(OnnxCall& call) {
  const Type x = call.type(0);
  if (x.rank() != 3 && x.rank() != 4)
    call.refuse("{}: only rows and images, with 3 or 4 axes, are supported", to_text(x));
  return x.rank() - 2;
}

Value as_image(OnnxCall& call, Value x, const char* role) {
  Shape shape = call.type_of(x).shape;
  if (shape.size() == 4) return x;
  shape.insert(shape.begin() + 2, Size(1));
  return call.reshape(x, shape, role);
}

Value from_image(OnnxCall& call, Value y, std::size_t dimensions) {
  if (dimensions == 2) return y;
  Shape shape = call.type_of(y).shape;
  shape.erase(shape.begin() + 2);
  return call.reshape(y, shape, "row");
}

// Far beyond what is real, so that sums and products of them stay numbers.
constexpr std::int64_t kMostWindow = 1 << 20;
constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;

std::int64_t constant_axis(OnnxCall& call, const Type& x, std::size_t axis) {
  if (!x.shape[axis].is_constant()) call.refuse("{}: axis {} must be known", to_text(x), axis);
  const std::int64_t size = x.shape[axis].constant();
  if (size > kMostPixels) call.refuse("{}: axis {} is too long", to_text(x), axis);
  return size;
}

Window read_window(OnnxCall& call, std::vector<std::int64_t> kernel, const Type& image,
                   std::size_t dimensions) {
  Window window;
  window.kernel = two(call, std::move(kernel), 1, dimensions);
  window.strides =
      two(call, call.integers("strides", std::vector<std::int64_t>(dimensions, 1)), 1, dimensions);
  window.dilations = two(call, call.integers("dilations", std::vector<std::int64_t>(dimensions, 1)),
                         1, dimensions);
  for (const auto* list : {&window.kernel, &window.strides, &window.dilations})
    for (const std::int64_t number : *list)
      if (number < 1 || number > kMostWindow) call.refuse("a window of {}", number);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  const bool is_given = automatic == "NOTSET" || automatic.empty();
  if (!is_same && !is_given && automatic != "VALID")
    call.refuse("auto_pad \"{}\" is none of ONNX's", automatic);
  std::vector<std::int64_t> pads(2 * dimensions, 0);
  if (is_given) pads = call.integers("pads", pads);
  if (pads.size() != 2 * dimensions) call.refuse("{} pads for {} axes", pads.size(), dimensions);
  for (const std::int64_t pad : pads)
    if (pad < 0 || pad > kMostWindow) call.refuse("padding of {}", pad);
  window.pads = dimensions == 2 ? pads : std::vector<std::int64_t>{0, pads[0], 0, pads[1]};
  if (is_same) {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t size = constant_axis(call, image, i + 2);
      const std::int64_t outputs = (size + window.strides[i] - 1) / window.strides[i];
      const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
      const std::int64_t total =
          std::max<std::int64_t>(0, (outputs - 1) * window.strides[i] + reach - size);
      // The odd one is at the end, or at the start.
      window.pads[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.pads[i + 2] = total - window.pads[i];
    }
  }
  return window;
}

// The sizes of filters, which have as many axes as what they are applied to. What the file says of
// them beside must be the same.
std::vector<std::int64_t> filter_sizes(OnnxCall& call) {
  const Type weight = call.type(1);
  if (weight.rank() != call.type(0).rank())
    call.refuse("weight {} does not fit {}", to_text(weight), to_text(call.type(0)));
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 2; axis < weight.rank(); ++axis)
    sizes.push_back(constant_axis(call, weight, axis));
  if (const std::vector<std::int64_t> said = call.integers("kernel_shape", sizes); said != sizes)
    call.refuse("weight {} and kernel_shape {} differ", to_text(weight), to_text(said));
  return sizes;
}

void map_conv(OnnxCall& call) {
  const std::size_t dimensions = spatial_rank(call);
  std::vector<std::int64_t> kernel = filter_sizes(call);
  const Value x = as_image(call, call.value(0), "image");
  const Window window = read_window(call, std::move(kernel), call.type_of(x), dimensions);
  std::vector<Value> operands{x, as_image(call, call.value(1), "window")};
  if (call.has(2)) operands.push_back(call.value(2));
  const Value y = call.add("conv2d", operands,
                           {{"strides", window.strides},
                            {"pads", window.pads},
                            {"dilations", window.dilations},
                            {"groups", call.integer("group", 1)}});
  call.give(from_image(call, y, dimensions));
}

// The gradient of a convolution, written as one: the input with zeros between its pixels, and the
// windows turned around.
void map_conv_transpose(OnnxCall& call) {
  const std::size_t dimensions = spatial_rank(call);
  std::vector<std::int64_t> kernel = filter_sizes(call);
  const Value x = as_image(call, call.value(0), "image");
  const Type image = call.type_of(x);
  const Value filters = as_image(call, call.value(1), "window");
  const Type weight = call.type_of(filters);
  const std::int64_t groups = call.integer("group", 1);
  Window window = read_window(call, std::move(kernel), image, dimensions);
  std::vector<std::int64_t> extra =
      two(call, call.integers("output_padding", std::vector<std::int64_t>(dimensions, 0)), 0,
          dimensions);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  std::vector<std::int64_t> wanted = call.integers("output_shape");
  if (wanted.size() > dimensions)
    wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(dimensions));
  if (!wanted.empty()) wanted = two(call, wanted, 1, dimensions);
  for (const std::int64_t size : wanted)
    if (size < 1 || size > kMostPixels) call.refuse("output_shape of {}", size);
  const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  for (std::size_t i = 0; i < 2; ++i) {
    if (extra[i] < 0 || extra[i] > kMostWindow) call.refuse("output_padding of {}", extra[i]);
    if (wanted.empty() && !is_same) continue;
    const std::int64_t size = constant_axis(call, image, i + 2);
    const std::int64_t target = wanted.empty() ? size * window.strides[i] : wanted[i];
    const std::int64_t total = window.strides[i] * (size - 1) + extra[i] +
                               (window.kernel[i] - 1) * window.dilations[i] + 1 - target;
    // More than the windows reach is filled at the end.
    if (total < 0) extra[i] -= total;
    const std::int64_t cut = std::max<std::int64_t>(0, total);
    window.pads[i] = automatic == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    window.pads[i + 2] = cut - window.pads[i];
  }
  // Zeros between the pixels.
  Value spread = x;
  if (window.strides[0] != 1 || window.strides[1] != 1) {
    const Shape& s = image.shape;
    spread = call.reshape(x, {s[0], s[1], s[2], Size(1), s[3], Size(1)}, "apart");
    spread = call.add(
        "pad", {spread},
        {{"pads", std::vector<std::int64_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, window.strides[0] - 1, 0,
                                            window.strides[1] - 1}}},
        {}, "zeros");
    spread = call.reshape(
        spread, {s[0], s[1], s[2] * Size(window.strides[0]), s[3] * Size(window.strides[1])},
        "stretched");
  }
  std::vector<std::int64_t> pads(8, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i];
    pads[2 + i] = reach - window.pads[i];
    pads[6 + i] = reach - window.pads[i + 2] + extra[i] - (window.strides[i] - 1);
  }
  const Value padded = call.add("pad", {spread}, {{"pads", pads}}, {}, "padded");
  // [C,O/g,..] to [O,C/g,..], back to front.
  const Size g(groups);
  const std::optional<Size> inner = groups < 1 ? std::nullopt : exact_quotient(weight.shape[0], g);
  if (!inner) call.refuse("{} channels in {} groups", weight.shape[0].text(), groups);
  Value turned = call.add("crop", {filters},
                          {{"begins", std::vector<std::int64_t>{0, 0, -1, -1}},
                           {"steps", std::vector<std::int64_t>{1, 1, -1, -1}}},
                          {weight}, "turned");
  turned = call.reshape(turned, {g, *inner, weight.shape[1], weight.shape[2], weight.shape[3]},
                        "groups");
  turned = call.transpose(turned, {0, 2, 1, 3, 4}, "filters_first");
  turned = call.reshape(turned, {g * weight.shape[1], *inner, weight.shape[2], weight.shape[3]},
                        "filters");
  std::vector<Value> operands{padded, turned};
  if (call.has(2)) operands.push_back(call.value(2));
  const Value y =
      call.add("conv2d", operands, {{"dilations", window.dilations}, {"groups", groups}});
  call.give(from_image(call, y, dimensions));
}

// With ceil_mode the last window may hang over the end, if it begins before it. Says whether one
// does.
bool widen_for_ceiling(OnnxCall& call, const Type& image, Window& window) {
  bool hangs_over = false;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = constant_axis(call, image, i + 2);
    const std::int64_t room = size + window.pads[i] + window.pads[i + 2] - window.kernel[i];
    std::int64_t last = (room + window.strides[i] - 1) / window.strides[i];
    if (last * window.strides[i] >= size + window.pads[i]) --last;
    const std::int64_t beyond = std::max<std::int64_t>(0, last * window.strides[i] - room);
    window.pads[i + 2] += beyond;
    hangs_over = hangs_over || beyond > 0;
  }
  return hangs_over;
}

// Zeros around the image itself, which then has them as pixels.
Value pad_image(OnnxCall& call, Value x, const std::vector<std::int64_t>& pads) {
  return call.add(
      "pad", {x},
      {{"pads", std::vector<std::int64_t>{0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3]}}}, {},
      "padded");
}

void map_pool(OnnxCall& call, const char* op) {
  const std::size_t dimensions = spatial_rank(call);
  if (call.wants(1)) call.refuse("indices as an output are not supported");
  Value x = as_image(call, call.value(0), "image");
  Window window = read_window(call, call.integers("kernel_shape"), call.type_of(x), dimensions);
  if (window.dilations != std::vector<std::int64_t>{1, 1})
    call.refuse("windows with gaps are not supported");
  const bool is_mean = std::string_view(op) == "avg_pool2d";
  bool counts_padding = is_mean && call.integer("count_include_pad", 0) != 0;
  if (call.integer("ceil_mode", 0) != 0) {
    Window ceiling = window;
    // What hangs over counts for nothing, even where padding counts: that becomes pixels first.
    if (widen_for_ceiling(call, call.type_of(x), ceiling) && counts_padding) {
      x = pad_image(call, x, window.pads);
      for (std::size_t i = 0; i < 4; ++i) ceiling.pads[i] -= window.pads[i];
      counts_padding = false;
    }
    window = ceiling;
  }
  Attributes attributes{
      {"kernel", window.kernel}, {"strides", window.strides}, {"pads", window.pads}};
  if (is_mean) attributes["count_include_pad"] = counts_padding;
  call.give(from_image(call, call.add(op, {x}, std::move(attributes)), dimensions));
}

void map_max_pool(OnnxCall& call) {
  map_pool(call, "max_pool2d");
}
void map_average_pool(OnnxCall& call) {
  map_pool(call, "avg_pool2d");
}

Value over_pixels(OnnxCall& call, const char* op) {
  const Type x = call.type(0);
  if (x.rank() < 3) call.refuse("{} has no pixels", to_text(x));
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 2; axis < x.rank(); ++axis)
    axes.push_back(static_cast<std::int64_t>(axis));
  return call.add(op, {call.value(0)}, {{"axes", axes}, {"keep", true}});
}
void map_global_average_pool(OnnxCall& call) {
  call.give(over_pixels(call, "mean"));
}
void map_global_max_pool(OnnxCall& call) {
  call.give(over_pixels(call, "max"));
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "AveragePool", .map = map_average_pool},
      {.name = "Conv", .map = map_conv},
      {.name = "ConvTranspose", .map = map_conv_transpose},
      {.name = "GlobalAveragePool", .map = map_global_average_pool},
      {.name = "GlobalMaxPool", .map = map_global_max_pool},
      {.name = "MaxPool", .map = map_max_pool},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::windows
