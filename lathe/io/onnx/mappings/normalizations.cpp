#include <cmath>

#include "lathe/io/onnx/onnx_op.h"

// Ops that scale by means and deviations, or to a sum of one.
namespace lathe::io::onnx::normalizations {
namespace {

Value over(OnnxCall& call, const char* op, Value x, std::vector<std::int64_t> axes,
           const char* role) {
  return call.add(op, {x}, {{"axes", std::move(axes)}, {"keep", true}}, {}, role);
}

Value pair(OnnxCall& call, const char* op, Value a, Value b, const char* role) {
  return call.add(op, {a, b}, {}, {}, role);
}

Value filled(OnnxCall& call, const Size& size, double value, DType dtype, const char* role) {
  return call.add("constant", {}, {{"values", std::vector<double>{value}}},
                  {{.dtype = dtype, .shape = {size}}}, role);
}

struct Moments {
  Value centred, mean, variance;
};

Moments moments(OnnxCall& call, Value x, const std::vector<std::int64_t>& axes) {
  Moments result;
  result.mean = over(call, "mean", x, axes, "mean");
  result.centred = pair(call, "sub", x, result.mean, "centred");
  result.variance = over(call, "mean", pair(call, "mul", result.centred, result.centred, "square"),
                         axes, "variance");
  return result;
}

Value deviation(OnnxCall& call, Value variance, double eps) {
  const Value sum =
      pair(call, "add", variance, call.number(eps, call.type_of(variance).dtype), "with_eps");
  return call.add("sqrt", {sum}, {}, {}, "deviation");
}

// The axes from `axis` on as one, which is what our norms are of.
struct LastAxes {
  Value x;
  Size width = 1;
  Shape shape;
  std::size_t axis = 0;
};

LastAxes join_last(OnnxCall& call) {
  LastAxes result;
  const Type x = call.type(0);
  result.shape = x.shape;
  result.axis = axis_at(call, call.integer("axis", -1), x.rank());
  Shape joined(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(result.axis));
  for (std::size_t axis = result.axis; axis < x.rank(); ++axis) result.width *= x.shape[axis];
  joined.push_back(result.width);
  result.x = call.reshape(call.value(0), joined, "joined");
  return result;
}

// A weight or bias of the joined axes; one that is broadcast is stretched first.
Value joined_operand(OnnxCall& call, std::size_t index, const LastAxes& last) {
  const Shape inner(last.shape.begin() + static_cast<std::ptrdiff_t>(last.axis), last.shape.end());
  return call.reshape(call.broadcast(call.value(index), inner), {last.width}, "vector");
}

void map_layer_norm(OnnxCall& call) {
  const LastAxes last = join_last(call);
  const double eps = call.real("epsilon", 1e-5);
  const DType dtype = call.type_of(last.x).dtype;
  const Value weight = joined_operand(call, 1, last);
  const Value bias =
      call.has(2) ? joined_operand(call, 2, last) : filled(call, last.width, 0, dtype, "no_bias");
  const Value y = call.add("layer_norm", {last.x, weight, bias}, {{"eps", eps}});
  call.give(call.reshape(y, last.shape, "shaped"));
  if (!call.wants(1) && !call.wants(2)) return;
  const Moments found = moments(call, last.x, {-1});
  Shape kept = last.shape;
  for (std::size_t axis = last.axis; axis < kept.size(); ++axis) kept[axis] = Size(1);
  call.give(call.reshape(found.mean, kept, "mean_shaped"), 1);
  const Value inverse =
      call.add("reciprocal", {deviation(call, found.variance, eps)}, {}, {}, "inverse");
  call.give(call.reshape(inverse, kept, "inverse_shaped"), 2);
}

void map_rms_norm(OnnxCall& call) {
  const LastAxes last = join_last(call);
  const Value y = call.add("rms_norm", {last.x, joined_operand(call, 1, last)},
                           {{"eps", call.real("epsilon", 1e-5)}});
  call.give(call.reshape(y, last.shape, "shaped"));
}

// One number a channel, for [N,C,..].
Value by_channel(OnnxCall& call, Value vector, std::size_t rank) {
  if (rank < 2) call.refuse("{} has no channels", to_text(call.type(0)));
  Shape shape(rank, Size(1));
  shape[1] = call.type_of(vector).num_elements();
  return call.reshape(vector, shape, "by_channel");
}

Value normalized(OnnxCall& call, const Moments& found, double eps) {
  return pair(call, "div", found.centred, deviation(call, found.variance, eps), "normalized");
}

void map_instance_norm(OnnxCall& call) {
  const Value x = call.value(0);
  const std::size_t rank = call.type_of(x).rank();
  if (rank < 3) call.refuse("{} has no positions", to_text(call.type_of(x)));
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 2; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  const Value y = normalized(call, moments(call, x, axes), call.real("epsilon", 1e-5));
  const Value scaled = pair(call, "mul", y, by_channel(call, call.value(1), rank), "scaled");
  call.give(pair(call, "add", scaled, by_channel(call, call.value(2), rank), "shifted"));
}

// Channels in groups, each normalized alone. The scale is of groups in opset 18, of channels later.
void map_group_norm(OnnxCall& call) {
  const Type x = call.type(0);
  const Size groups(call.integer("num_groups", 1));
  const std::optional<Size> width = x.rank() < 3 || groups == Size(0)
                                        ? std::nullopt
                                        : exact_quotient(x.num_elements(), x.shape[0] * groups);
  if (!width) call.refuse("{} in {} groups", to_text(x), groups.text());
  const Value joined = call.reshape(call.value(0), {x.shape[0], groups, *width}, "groups");
  Value y = normalized(call, moments(call, joined, {2}), call.real("epsilon", 1e-5));
  if (call.opset() < 21) {
    y = pair(call, "mul", y, by_channel(call, call.value(1), 3), "scaled");
    y = pair(call, "add", y, by_channel(call, call.value(2), 3), "shifted");
    call.give(call.reshape(y, x.shape));
    return;
  }
  y = call.reshape(y, x.shape, "channels");
  y = pair(call, "mul", y, by_channel(call, call.value(1), x.rank()), "scaled");
  call.give(pair(call, "add", y, by_channel(call, call.value(2), x.rank()), "shifted"));
}

void map_batch_norm(OnnxCall& call) {
  const Value x = call.value(0);
  const double eps = call.real("epsilon", 1e-5);
  if (call.integer("training_mode", 0) == 0) {
    if (call.opset() < 9 && call.integer("spatial", 1) == 0)
      call.refuse("statistics of every pixel are not supported");
    const Value mean = call.value(3), variance = call.value(4);
    // Statistics are measured, not trained.
    for (const Value statistic : {mean, variance})
      if (call.graph().is(statistic.node, "state"))
        call.graph().set_attribute(statistic.node, "role", std::string("buffer"));
    call.give(
        call.add("batch_norm", {x, call.value(1), call.value(2), mean, variance}, {{"eps", eps}}));
    return;
  }
  // By the batch's own statistics, of which the running ones take a part.
  const std::size_t rank = call.type_of(x).rank();
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (axis != 1) axes.push_back(static_cast<std::int64_t>(axis));
  const Moments found = moments(call, x, axes);
  const Value y = normalized(call, found, eps);
  const Value scaled = pair(call, "mul", y, by_channel(call, call.value(1), rank), "scaled");
  call.give(pair(call, "add", scaled, by_channel(call, call.value(2), rank), "shifted"));
  const double momentum = call.real("momentum", 0.9);
  const auto running = [&](std::size_t operand, Value own, std::size_t output) {
    if (!call.wants(output)) return;
    const DType dtype = call.type_of(x).dtype;
    const Value old = pair(call, "mul", call.value(operand), call.number(momentum, dtype), "old");
    const Value flat = call.reshape(own, call.type(operand).shape, "statistic");
    const Value added = pair(call, "mul", flat, call.number(1 - momentum, dtype), "new");
    call.give(pair(call, "add", old, added, "running"), output);
  };
  running(3, found.mean, 1);
  running(4, found.variance, 2);
}

void map_mean_variance(OnnxCall& call) {
  const Value x = call.value(0);
  const Moments found = moments(call, x, call.integers("axes", {0, 2, 3}));
  const Value root = call.add("sqrt", {found.variance}, {}, {}, "deviation");
  const Value divisor = pair(call, "add", root, call.number(1e-9), "with_eps");
  call.give(pair(call, "div", found.centred, divisor, "normalized"));
}

// Each element by the squares of its channel's neighbours.
void map_lrn(OnnxCall& call) {
  const Value x = call.value(0);
  const Type type = call.type_of(x);
  const std::int64_t size = call.integer("size", 1);
  if (size < 1 || size > 256 || type.rank() < 2)
    call.refuse("{} over {} channels", to_text(type), size);
  std::vector<std::int64_t> pads(2 * type.rank(), 0);
  pads[1] = (size - 1) / 2;
  pads[1 + type.rank()] = size - 1 - pads[1];
  const Value squares =
      call.add("pad", {pair(call, "mul", x, x, "square")}, {{"pads", pads}}, {}, "padded");
  Value sum = kNone;
  for (std::int64_t i = 0; i < size; ++i) {
    std::vector<std::int64_t> begins(type.rank(), 0);
    begins[1] = i;
    const Value part = call.add("crop", {squares}, {{"begins", begins}}, {type}, "neighbour");
    sum = sum.is_none() ? part : pair(call, "add", sum, part, "sum");
  }
  const double alpha = call.real("alpha", 1e-4), beta = call.real("beta", 0.75),
               bias = call.real("bias", 1.0);
  const Value share =
      pair(call, "mul", sum, call.number(alpha / static_cast<double>(size), type.dtype), "share");
  const Value base = pair(call, "add", share, call.number(bias, type.dtype), "base");
  call.give(pair(call, "div", x, pair(call, "pow", base, call.number(beta, type.dtype), "power"),
                 "normalized"));
}

void map_lp_norm(OnnxCall& call) {
  const Value x = call.value(0);
  const std::int64_t p = call.integer("p", 2);
  const std::vector<std::int64_t> axes{call.integer("axis", -1)};
  if (p != 1 && p != 2) call.refuse("norm {}", p);
  Value norm = p == 1 ? call.add("abs", {x}, {}, {}, "size") : pair(call, "mul", x, x, "square");
  norm = over(call, "sum", norm, axes, "sum");
  if (p == 2) norm = call.add("sqrt", {norm}, {}, {}, "root");
  // Zeros stay zeros: those of a row whose norm is zero are divided by 1.
  const DType dtype = call.type_of(x).dtype;
  const Value is_zero = pair(call, "equal", norm, call.number(0, dtype), "is_zero");
  norm = call.add("where", {is_zero, call.number(1, dtype), norm}, {}, {}, "divisor");
  call.give(pair(call, "div", x, norm, "normalized"));
}

// Before opset 13 all axes from the one named on are one.
Value along_axis(OnnxCall& call, const char* op, Shape& shape) {
  const Type x = call.type(0);
  shape = x.shape;
  const std::size_t axis =
      axis_at(call, call.integer("axis", call.opset() < 13 ? 1 : -1), x.rank());
  if (call.opset() >= 13)
    return call.add(op, {call.value(0)}, {{"axis", static_cast<std::int64_t>(axis)}});
  Shape flat(2, Size(1));
  for (std::size_t i = 0; i < x.rank(); ++i) flat[i < axis ? 0 : 1] *= x.shape[i];
  const bool is_last = axis + 1 == x.rank();
  return call.add(op, {is_last ? call.value(0) : call.reshape(call.value(0), flat, "flat")});
}

void map_softmax(OnnxCall& call) {
  Shape shape;
  const Value y = along_axis(call, "softmax", shape);
  call.give(call.reshape(y, shape, "shaped"));
}
void map_log_softmax(OnnxCall& call) {
  Shape shape;
  const Value y = along_axis(call, "log_softmax", shape);
  call.give(call.reshape(y, shape, "shaped"));
}

// 1 at the first of the largest elements, 0 elsewhere.
void map_hardmax(OnnxCall& call) {
  const Type x = call.type(0);
  const std::size_t axis =
      axis_at(call, call.integer("axis", call.opset() < 13 ? 1 : -1), x.rank());
  Shape shape = x.shape;
  Value values = call.value(0);
  std::size_t along = axis;
  if (call.opset() < 13) {
    shape.assign(2, Size(1));
    for (std::size_t i = 0; i < x.rank(); ++i) shape[i < axis ? 0 : 1] *= x.shape[i];
    values = call.reshape(values, shape, "flat");
    along = 1;
  }
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != along) order.push_back(static_cast<std::int64_t>(i));
  order.push_back(static_cast<std::int64_t>(along));
  const Value place = call.cast(
      call.add("argmax", {call.transpose(values, order, "last")}, {}, {}, "place"), DType::I64);
  Shape kept = shape;
  kept[along] = Size(1);
  Shape counted(shape.size(), Size(1));
  counted[along] = shape[along];
  const Value range =
      call.add("range", {}, {}, {{.dtype = DType::I64, .shape = {shape[along]}}}, "range");
  const Value is_here = pair(call, "equal", call.reshape(place, kept, "kept"),
                             call.reshape(range, counted, "along"), "is_here");
  call.give(call.reshape(call.cast(is_here, x.dtype), x.shape, "shaped"));
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "BatchNormalization", .map = map_batch_norm},
      {.name = "GroupNormalization", .map = map_group_norm},
      {.name = "Hardmax", .map = map_hardmax},
      {.name = "InstanceNormalization", .map = map_instance_norm},
      {.name = "LRN", .map = map_lrn},
      {.name = "LayerNormalization", .map = map_layer_norm},
      {.name = "LogSoftmax", .map = map_log_softmax},
      {.name = "LpNormalization", .map = map_lp_norm},
      {.name = "MeanVarianceNormalization", .map = map_mean_variance},
      {.name = "RMSNormalization", .map = map_rms_norm},
      {.name = "Softmax", .map = map_softmax},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::normalizations
