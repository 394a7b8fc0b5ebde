#include <algorithm>
#include <cmath>

#include "lathe/io/onnx/onnx_op.h"

// Resize and Upsample. Along each axis the result is a fixed mixture of the elements there: rows of
// a matrix that is known before the model runs, applied as a layer; where every row takes one
// element, a gather.
namespace lathe::io::onnx::resizing {
namespace {

struct Rule {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludes_outside = false;
};

struct AxisScale {
  std::int64_t from = 1, to = 1;
  double scale = 1.0;
  bool is_ratio = true;  ///< the scale is to / from, however it is rounded
};

// The place that `x` steps of the result are at. A ratio is never rounded itself: a place that is
// whole must not fall below.
double unscaled(const AxisScale& axis, double x) {
  return axis.is_ratio ? x * static_cast<double>(axis.from) / static_cast<double>(axis.to)
                       : x / axis.scale;
}

double source_of(OnnxCall& call, const Rule& rule, const AxisScale& axis, std::int64_t place) {
  const auto x = static_cast<double>(place);
  // What a scale makes of a length need not be whole.
  const double length = static_cast<double>(axis.from);
  const double resized = axis.is_ratio ? static_cast<double>(axis.to) : axis.scale * length;
  if (rule.coordinates == "half_pixel") return unscaled(axis, x + 0.5) - 0.5;
  if (rule.coordinates == "pytorch_half_pixel")
    return axis.to > 1 ? unscaled(axis, x + 0.5) - 0.5 : 0.0;
  if (rule.coordinates == "half_pixel_symmetric") {
    // The middle stays the middle where the scaled length is not whole.
    const double adjustment = static_cast<double>(axis.to) / resized;
    const double centre = length / 2;
    return centre * (1 - adjustment) + unscaled(axis, x + 0.5) - 0.5;
  }
  if (rule.coordinates == "tf_half_pixel_for_nn") return unscaled(axis, x + 0.5);
  if (rule.coordinates == "asymmetric") return unscaled(axis, x);
  if (rule.coordinates == "align_corners")
    return axis.to > 1 ? x * (length - 1) / (resized - 1) : 0.0;
  call.refuse("coordinates \"{}\" are not supported", rule.coordinates);
}

std::int64_t nearest_of(OnnxCall& call, const Rule& rule, const AxisScale& axis, double x) {
  // Opset 10 has no word for it: the element behind where there are fewer, as its own test has it.
  if (rule.nearest == "simple")
    return static_cast<std::int64_t>(axis.scale < 1 ? std::ceil(x) : std::floor(x));
  if (rule.nearest == "floor") return static_cast<std::int64_t>(std::floor(x));
  if (rule.nearest == "ceil") return static_cast<std::int64_t>(std::ceil(x));
  if (rule.nearest == "round_prefer_floor") return static_cast<std::int64_t>(std::ceil(x - 0.5));
  if (rule.nearest == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(x + 0.5));
  call.refuse("nearest_mode \"{}\" is not supported", rule.nearest);
}

// Weights of the elements around x, which begin at `first`.
struct Mixture {
  std::int64_t first = 0;
  std::vector<double> weights;
};

Mixture mixture_of(OnnxCall& call, const Rule& rule, const AxisScale& axis, double x) {
  if (rule.mode == "nearest") return {nearest_of(call, rule, axis, x), {1.0}};
  const double low = std::floor(x);
  const double rest = x - low;
  const auto place = static_cast<std::int64_t>(low);
  if (rule.mode == "linear") return {place, {1 - rest, rest}};
  if (rule.mode != "cubic") call.refuse("mode \"{}\" is not supported", rule.mode);
  const double a = rule.cubic;
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {place - 1, {far(1 + rest), near(rest), near(1 - rest), far(2 - rest)}};
}

// The row of each element of the result.
Tensor matrix_of(OnnxCall& call, const Rule& rule, const AxisScale& axis) {
  Tensor matrix(DType::F32, {axis.to, axis.from});
  const std::span<float> rows = matrix.mutable_data<float>();
  for (std::int64_t i = 0; i < axis.to; ++i) {
    const Mixture mixture = mixture_of(call, rule, axis, source_of(call, rule, axis, i));
    std::vector<double> row(static_cast<std::size_t>(axis.from), 0.0);
    double sum = 0;
    for (std::size_t j = 0; j < mixture.weights.size(); ++j) {
      const std::int64_t place = mixture.first + static_cast<std::int64_t>(j);
      if (rule.excludes_outside && (place < 0 || place >= axis.from)) continue;
      row[static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, axis.from - 1))] +=
          mixture.weights[j];
      sum += mixture.weights[j];
    }
    for (std::int64_t j = 0; j < axis.from; ++j)
      rows[static_cast<std::size_t>(i * axis.from + j)] = static_cast<float>(
          row[static_cast<std::size_t>(j)] / (rule.excludes_outside && sum != 0 ? sum : 1.0));
  }
  return matrix;
}

Value resize_axis(OnnxCall& call, Value x, std::size_t axis, const Tensor& matrix,
                  bool is_nearest) {
  const std::string role = fmt::format("axis{}", axis);
  if (is_nearest) {
    Tensor places(DType::I64, {matrix.dim(0)});
    const std::span<std::int64_t> elements = places.mutable_data<std::int64_t>();
    const std::span<const float> rows = matrix.data<float>();
    for (std::int64_t i = 0; i < matrix.dim(0); ++i)
      for (std::int64_t j = 0; j < matrix.dim(1); ++j)
        if (rows[static_cast<std::size_t>(i * matrix.dim(1) + j)] != 0)
          elements[static_cast<std::size_t>(i)] = j;
    return call.add("gather", {x, call.array(places, role + "/places")},
                    {{"axis", static_cast<std::int64_t>(axis)}}, {}, role);
  }
  const std::size_t rank = call.type_of(x).rank();
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < rank; ++i) order.push_back(static_cast<std::int64_t>(i));
  std::swap(order[axis], order[rank - 1]);
  const Value last = call.transpose(x, order, role + "/last");
  const Value mixed =
      call.add("linear", {last, call.array(matrix, role + "/mixture")}, {}, {}, role);
  return call.transpose(mixed, order, role + "/back");
}

void resize(OnnxCall& call, const Rule& rule, const std::vector<AxisScale>& scales) {
  Value x = call.value(0);
  if (call.type_of(x).dtype != DType::F32)
    call.refuse("{} are not supported", to_text(call.type_of(x)));
  constexpr std::int64_t kMost = 1 << 26;
  for (std::size_t axis = 0; axis < scales.size(); ++axis) {
    const AxisScale& scale = scales[axis];
    if (scale.to == scale.from && scale.scale == 1.0) continue;
    if (scale.to < 1 || scale.from < 1 || scale.to > kMost / scale.from)
      call.refuse("{} to {} elements", scale.from, scale.to);
    x = resize_axis(call, x, axis, matrix_of(call, rule, scale), rule.mode == "nearest");
  }
  call.give(x);
}

std::vector<AxisScale> by_scales(OnnxCall& call, const std::vector<double>& scales,
                                 const std::vector<std::int64_t>& axes) {
  const Type x = call.type(0);
  if (scales.size() != axes.size()) call.refuse("{} scales of {} axes", scales.size(), axes.size());
  std::vector<AxisScale> result(x.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_at(call, axes[i], x.rank());
    if (scales[i] == 1.0) continue;
    if (!x.shape[axis].is_constant() || !(scales[i] > 0 && scales[i] < 1e6))
      call.refuse("axis {} of {} by {}", axis, to_text(x), scales[i]);
    result[axis].from = x.shape[axis].constant();
    result[axis].scale = scales[i];
    // Sizes are computed in floats, as ONNX infers shapes: 0.7 of 10 are 7.
    const auto length = static_cast<float>(result[axis].from);
    const auto scale = static_cast<float>(scales[i]);
    result[axis].to = static_cast<std::int64_t>(std::floor(length * scale));
    result[axis].is_ratio = static_cast<float>(result[axis].to) / length == scale;
  }
  return result;
}

std::vector<AxisScale> by_sizes(OnnxCall& call, const std::vector<Size>& sizes,
                                const std::vector<std::int64_t>& axes) {
  const Type x = call.type(0);
  if (sizes.size() != axes.size()) call.refuse("{} sizes of {} axes", sizes.size(), axes.size());
  if (call.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    call.refuse("keeping the aspect ratio is not supported");
  std::vector<AxisScale> result(x.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_at(call, axes[i], x.rank());
    if (sizes[i] == x.shape[axis]) continue;
    if (!x.shape[axis].is_constant() || !sizes[i].is_constant() || x.shape[axis].constant() < 1)
      call.refuse("axis {} of {} to {}", axis, to_text(x), sizes[i].text());
    result[axis].from = x.shape[axis].constant();
    result[axis].to = sizes[i].constant();
    result[axis].scale =
        static_cast<double>(result[axis].to) / static_cast<double>(result[axis].from);
  }
  return result;
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) result.push_back(tensor.at(i));
  return result;
}

void map_resize(OnnxCall& call) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < call.type(0).rank(); ++i)
    axes.push_back(static_cast<std::int64_t>(i));
  axes = call.integers("axes", axes);
  if (call.integer("antialias", 0) != 0) call.refuse("antialiasing is not supported");
  Rule rule{
      .mode = call.text("mode", "nearest"),
      .coordinates = call.text("coordinate_transformation_mode",
                               call.opset() < 11 ? "asymmetric" : "half_pixel"),
      .nearest = call.opset() < 11 ? "simple" : call.text("nearest_mode", "round_prefer_floor"),
      .cubic = call.real("cubic_coeff_a", -0.75),
      .excludes_outside = call.integer("exclude_outside", 0) != 0};
  const std::size_t scales = call.opset() < 11 ? 1 : 2;
  if (call.has(3) && call.opset() >= 11)
    resize(call, rule, by_sizes(call, call.need_sizes(3, "the sizes"), axes));
  else
    resize(call, rule, by_scales(call, numbers(call.need_constant(scales, "the scales")), axes));
}

void map_upsample(OnnxCall& call) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < call.type(0).rank(); ++i)
    axes.push_back(static_cast<std::int64_t>(i));
  std::vector<double> scales;
  if (const auto found = call.node().attributes.find("scales");
      found != call.node().attributes.end() &&
      std::holds_alternative<std::vector<double>>(found->second))
    scales = std::get<std::vector<double>>(found->second);
  else
    scales = numbers(call.need_constant(1, "the scales"));
  resize(call,
         {.mode = call.text("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"},
         by_scales(call, scales, axes));
}

const Register resize_op{OnnxOp{.name = "Resize", .map = map_resize}};
const Register upsample_op{OnnxOp{.name = "Upsample", .map = map_upsample}};

}  // namespace
}  // namespace lathe::io::onnx::resizing
