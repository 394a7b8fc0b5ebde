#include "lathe/ops/quantized_operands.h"

#include <cmath>

#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/operand_checks.h"

namespace lathe::ops {

std::shared_ptr<const NumberFormat> format_of(const AttributeReader& attributes) {
  std::shared_ptr<const NumberFormat> format = parse_format(attributes.text("format"));
  if (format == nullptr) fail("format \"float\" rounds nothing: expected a narrower one");
  return format;
}

AttributeSpec axis_attribute() {
  return {"axis", std::int64_t{-1},
          "the axis whose elements are rows, with scales of their own; -1: all but the last"};
}

Shape given_scale_shape(const NumberFormat& format, const Type& x) {
  const FormatFacts& facts = format.facts();
  check(facts.scale_source == ScaleSource::Given, "a format whose scales are handed in");
  if (facts.granularity == Granularity::Tensor) return {};
  Shape shape(x.shape.begin(), x.shape.end() - 1);
  if (facts.granularity == Granularity::Block) {
    const std::int64_t columns = constant_size("quantize", x.axis(-1), x);
    shape.push_back(Size((columns + facts.block_columns - 1) / facts.block_columns));
  }
  return shape;
}

Shape local_scale_shape(const NumberFormat& format, const Type& codes, std::int64_t columns) {
  const FormatFacts& facts = format.facts();
  Shape shape(codes.shape.begin(), codes.shape.end() - 1);
  if (!facts.is_row_local) {
    Size rows(1);
    for (const Size& size : shape) rows = rows * size;
    const std::int64_t of_tile = facts.block_rows;
    shape = {facts.granularity == Granularity::Tensor
                 ? Size(1)
                 : Size((constant_size("decode", rows, codes) + of_tile - 1) / of_tile)};
  }
  shape.emplace_back(format.scale_bytes(columns));
  return shape;
}

void check_quantized_operands(std::string_view op, const OpCall& call, const Type& x,
                              std::size_t scale) {
  if (x.dtype != DType::F32) fail("{}: x {} is not f32", op, to_text(x));
  require_rank_at_least(op, "x", x, 1);
  const std::int64_t axis = call.attributes().integer("axis");
  if (axis < -1) fail("{}: axis={} is below -1", op, axis);
  const Type matrix = matrix_type(op, x, axis);
  if (axis >= 0 && !x.num_elements().is_constant())
    fail("{}: axis={} needs a constant size, but x is {}", op, axis, to_text(x));
  const std::shared_ptr<const NumberFormat> format = format_of(call.attributes());
  const FormatFacts& facts = format->facts();
  const bool needs_scale = facts.scale_source == ScaleSource::Given;
  if (call.has(scale) != needs_scale)
    fail("{}: {} {}", op, facts.text,
         needs_scale ? "needs a scale" : "takes no scale: it has none or makes its own");
  const bool needs_zero = needs_scale && facts.has_zero_point;
  if (call.has(scale + 1) != needs_zero)
    fail("{}: {} {}", op, facts.text, needs_zero ? "needs a zero point" : "takes no zero point");
  for (std::size_t i = scale; i <= scale + 1; ++i) {
    if (!call.has(i)) continue;
    const Type& type = call.input(i);
    if (type.dtype != DType::F32 || type.shape != given_scale_shape(*format, matrix))
      fail("{}: operand {} is {}, but {} of {} needs {}", op, i, to_text(type), facts.text,
           to_text(x), to_text(Type{DType::F32, given_scale_shape(*format, matrix)}));
  }
}

std::int64_t scale_index(const FormatFacts& facts, std::int64_t columns, std::int64_t element) {
  switch (facts.granularity) {
    case Granularity::Tensor:
      return 0;
    case Granularity::Row:
      return element / columns;
    case Granularity::Block:
      break;
  }
  const std::int64_t blocks = (columns + facts.block_columns - 1) / facts.block_columns;
  return element / columns * blocks + element % columns / facts.block_columns;
}

double effective_scale(const FormatFacts& facts, float scale) {
  return facts.is_scale_power_of_two ? nearest_power_of_two(scale) : scale;
}

PlaceRange unclipped_places(const FormatFacts& facts) {
  const double half = facts.smallest_step / 2;
  return {facts.pass_minimum - half, facts.pass_maximum + half};
}

double step_gradient_factor(const FormatFacts& facts, std::int64_t columns) {
  const std::int64_t covered =
      facts.granularity == Granularity::Block ? facts.block_columns : columns;
  return 1 / std::sqrt(static_cast<double>(covered) * std::max(facts.maximum, 1.0));
}

QuantizedMatrix quantized_matrix(const KernelCall& call, const Tensor& x, std::size_t scale) {
  QuantizedMatrix result{
      format_of(call.attributes), to_matrix(x, call.attributes.integer("axis")), {}};
  result.args.columns = result.x.dims().back();
  result.args.rows = result.args.columns == 0 ? 0 : x.num_elements() / result.args.columns;
  result.args.x = result.x.data<float>().data();
  if (call.has(scale)) result.args.scales = call.input(scale).data<float>().data();
  if (call.has(scale + 1)) result.args.zeros = call.input(scale + 1).data<float>().data();
  return result;
}

}  // namespace lathe::ops
