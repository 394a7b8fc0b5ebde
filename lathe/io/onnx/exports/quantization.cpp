#include <cmath>

#include "lathe/core/number_format.h"
#include "lathe/core/role.h"
#include "lathe/io/onnx/onnx_writer.h"
#include "lathe/ops/elements.h"

// Numbers of few bits. ONNX rounds to whole numbers of 8 bits with a scale, and a zero point, for
// all of an array or for each index of one axis: integer and fixed-point formats of up to 8 bits
// are that, narrower ones with a clip around it. Weights in other formats are written as the floats
// that they stand for, which is the same; other roundings of values are nodes of our own domain.
namespace lathe::io::onnx {
namespace {

// A format as whole numbers with a scale.
struct Grid {
  double step = 1.0;         ///< of the numbers, at scale 1
  double low = 0, high = 0;  ///< the smallest and largest whole number
  bool has_scale = false, has_zero = false, is_by_row = false;
};

std::optional<Grid> grid_of(const std::string& text) {
  const FormatFacts facts = parse_format(text)->facts();
  const bool is_even = facts.family == "int" || facts.family == "fixed";
  if (!is_even || facts.element_bits > 8 || facts.scale_source == ScaleSource::Local ||
      facts.granularity == Granularity::Block || facts.is_scale_power_of_two)
    return std::nullopt;
  return Grid{.step = facts.smallest_step,
              .low = std::round(facts.minimum / facts.smallest_step),
              .high = std::round(facts.maximum / facts.smallest_step),
              .has_scale = facts.scale_source == ScaleSource::Given,
              .has_zero = facts.has_zero_point,
              .is_by_row = facts.granularity == Granularity::Row};
}

// Where a node that rounds a weight has its scale and zero point.
struct Rounding {
  std::string format;
  Value scale, zero;
  std::int64_t axis = -1;
};

std::optional<Rounding> rounding_of(const Graph& graph, NodeId node) {
  const auto operand = [&](std::size_t index) {
    return index < graph.inputs(node).size() ? graph.input(node, index) : kNone;
  };
  const AttributeReader attributes = graph.attribute(node);
  if (graph.is(node, "quantize"))
    return Rounding{attributes.text("format"), operand(1), operand(2), attributes.integer("axis")};
  if (graph.is(node, "decode"))
    return Rounding{attributes.text("format"), operand(2), operand(3), attributes.integer("axis")};
  return std::nullopt;
}

// What a mask multiplies, for a pruned weight: its zeros are whole numbers like the others. A mask
// stands behind the rounding of a packed weight.
NodeId without_masks(const Graph& graph, NodeId node) {
  const auto is_mask = [&](Value value) {
    return graph.is(value.node, "state") && state_role(graph, value.node) == StateRole::Mask;
  };
  while (graph.is(node, "mul")) {
    if (is_mask(graph.input(node, 1)))
      node = graph.input(node, 0).node;
    else if (is_mask(graph.input(node, 0)))
      node = graph.input(node, 1).node;
    else
      break;
  }
  return node;
}

Tensor flipped(const Tensor& matrix) {
  Tensor result(matrix.dtype(), {matrix.dim(1), matrix.dim(0)});
  const std::vector<std::int64_t> strides{1, matrix.dim(1)};
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < matrix.dim(1); ++i)
    for (std::int64_t j = 0; j < matrix.dim(0); ++j)
      places.push_back(i * strides[0] + j * strides[1]);
  ops::copy_elements(matrix, places, result);
  return result;
}

// The whole number of each element; the scale's index is that of the first axis where there are
// several.
Tensor codes_of(const Tensor& weight, const Tensor& scale, const std::vector<double>& zeros,
                DType dtype) {
  const std::int64_t rows = weight.dim(0);
  const std::int64_t width = rows == 0 ? 0 : weight.num_elements() / rows;
  std::vector<double> codes;
  for (std::int64_t i = 0; i < weight.num_elements(); ++i) {
    const std::int64_t place = scale.num_elements() == 1 ? 0 : i / width;
    const double unit = scale.at(place);
    codes.push_back((unit == 0 ? 0.0 : std::nearbyint(weight.at(i) / unit)) +
                    zeros[static_cast<std::size_t>(place)]);
  }
  Tensor result(dtype, weight.dims());
  ops::write_elements(result, codes);
  return result;
}

}  // namespace

std::string write_weight(ExportCall& call, std::size_t index, bool is_flipped) {
  const std::optional<Tensor> weight = call.parameter(index);
  // What others read too, such as a table of words, is one array in the file as well.
  const NodeId node = call.operand(index).node;
  const bool is_shared = call.graph().is(node, "state") && call.graph().uses(node).size() > 1;
  if (!weight || is_shared) {
    if (!is_flipped) return call.input(index);
    return call.add("Transpose", {call.input(index)}, {{"perm", std::vector<std::int64_t>{1, 0}}},
                    "flipped");
  }
  const Tensor plain = is_flipped ? flipped(*weight) : *weight;
  const std::optional<Rounding> rounding =
      rounding_of(call.graph(), without_masks(call.graph(), node));
  const std::optional<Grid> grid = rounding ? grid_of(rounding->format) : std::nullopt;
  const bool is_by_first = !grid || !grid->is_by_row || weight->rank() == 2 || rounding->axis == 0;
  if (!grid || !is_by_first) {
    const std::string name = call.free_name(call.operand(index));
    call.target().model.graph.initializers.emplace_back(name, plain);
    return name;
  }
  Tensor scale = Tensor::from<float>({}, {static_cast<float>(grid->step)});
  if (grid->has_scale) scale = call.evaluate(rounding->scale).converted(DType::F32);
  std::vector<double> zeros(static_cast<std::size_t>(scale.num_elements()), 0.0);
  if (grid->has_zero && !rounding->zero.is_none())
    zeros = ops::read_elements(call.evaluate(rounding->zero));
  const DType dtype = grid->low < 0 ? DType::I8 : DType::U8;
  const Tensor codes = codes_of(*weight, scale, zeros, dtype);
  Tensor points(dtype, scale.dims());
  ops::write_elements(points, zeros);
  call.target().num_rounded += 1;
  // Rows of [n,k] are columns of [k,n].
  return call.add("DequantizeLinear",
                  {call.constant(is_flipped ? flipped(codes) : codes, "codes"),
                   call.constant(scale, "scale"), call.constant(points, "zero")},
                  {{"axis", std::int64_t{is_flipped ? 1 : 0}}}, "weight");
}

namespace exports_quantization {
namespace {

void write_quantize(ExportCall& call) {
  const std::string format = call.attributes().text("format");
  const std::optional<Grid> grid = grid_of(format);
  // A zero point may lie anywhere, so that fewer than 8 bits are no clip.
  const bool is_narrow = grid && grid->has_zero && grid->high < 255;
  if (!grid || grid->is_by_row || is_narrow) {
    call.target().custom.push_back(fmt::format("{} ({})", call.graph().name(call.node()), format));
    call.give_node("Quantize", call.inputs(),
                   {{"format", format}, {"axis", call.attributes().integer("axis")}},
                   kCustomDomain);
    return;
  }
  std::string x = call.input(0);
  const DType dtype = grid->low < 0 ? DType::I8 : DType::U8;
  const std::string scale = grid->has_scale ? call.input(1) : call.number(grid->step);
  std::string zero = call.number(0, dtype);
  if (grid->has_zero && call.has(2))
    zero = call.add("Cast", {call.input(2)}, {{"to", onnx_code(dtype)}}, "zero");
  // What 8 bits have and the format has not, in units of the scale.
  const double lowest = grid->low < 0 ? -128 : 0, highest = grid->low < 0 ? 127 : 255;
  if (!grid->has_zero && (grid->low > lowest || grid->high < highest)) {
    const auto bound = [&](double code) {
      return call.add("Mul", {scale, call.number(code)}, {}, "bound");
    };
    const std::string low = grid->low > lowest ? bound(grid->low) : "";
    const std::string high = grid->high < highest ? bound(grid->high) : "";
    std::vector<std::string> inputs{x, low};
    if (!high.empty()) inputs.push_back(high);
    x = call.add("Clip", inputs, {}, "clipped");
  }
  call.target().num_rounded += 1;
  const std::string codes = call.add("QuantizeLinear", {x, scale, zero}, {}, "codes");
  call.give_node("DequantizeLinear", {codes, scale, zero});
}

const Register quantize{OnnxWriter{.name = "quantize", .write = write_quantize}};

}  // namespace
}  // namespace exports_quantization
}  // namespace lathe::io::onnx
