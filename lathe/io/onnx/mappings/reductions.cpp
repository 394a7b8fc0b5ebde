#include <numeric>

#include "lathe/io/onnx/onnx_op.h"
#include "lathe/io/onnx/size_rules.h"

// Ops that make one element of many along some axes.
namespace lathe::io::onnx::reductions {
namespace {

struct Axes {
  std::vector<std::int64_t> axes = {};  ///< from the front, sorted
  bool keeps = true;
  bool is_nothing = false;  ///< no axis is reduced: the operand itself
};

// Axes are an attribute in old opsets and an operand in new ones.
Axes read_axes(OnnxCall& call) {
  const std::size_t rank = call.type(0).rank();
  Axes result{.keeps = call.integer("keepdims", 1) != 0};
  const std::optional<std::vector<std::int64_t>> given = call.integers_of("axes", 1);
  if (given)
    for (const std::int64_t axis : *given)
      result.axes.push_back(static_cast<std::int64_t>(axis_at(call, axis, rank)));
  std::ranges::sort(result.axes);
  if (result.axes.empty()) {
    if (call.integer("noop_with_empty_axes", 0) != 0) result.is_nothing = true;
    result.axes.resize(rank);
    std::iota(result.axes.begin(), result.axes.end(), 0);
  }
  return result;
}

Value reduce(OnnxCall& call, const char* op, Value x, const Axes& axes) {
  if (axes.is_nothing || call.type_of(x).rank() == 0) return x;
  return call.add(op, {x}, {{"axes", axes.axes}, {"keep", axes.keeps}}, {}, op);
}

Value map_one(OnnxCall& call, const char* op, Value x) {
  return call.add(op, {x}, {}, {}, op);
}

void map_sum(OnnxCall& call) {
  call.give(reduce(call, "sum", call.value(0), read_axes(call)));
}
void map_mean(OnnxCall& call) {
  call.give(reduce(call, "mean", call.value(0), read_axes(call)));
}
// x in the other order, from the smallest to the largest, and back. Of integers it is -1 - x, for
// the least of them has no opposite; and of truth values, whether all or any are true.
Value turned(OnnxCall& call, Value x) {
  if (is_floating(call.type_of(x).dtype)) return map_one(call, "neg", x);
  return call.add("sub", {call.number(-1, DType::I64), call.cast(x, DType::I64)}, {}, {}, "turned");
}
Value extreme(OnnxCall& call, bool is_largest) {
  Value x = call.value(0);
  const DType dtype = call.type_of(x).dtype;
  if (!is_largest) x = turned(call, x);
  x = reduce(call, "max", x, read_axes(call));
  if (!is_largest) x = turned(call, x);
  return call.cast(x, dtype);
}
void map_max(OnnxCall& call) {
  call.give(extreme(call, true));
}
void map_min(OnnxCall& call) {
  call.give(extreme(call, false));
}
void map_prod(OnnxCall& call) {
  call.give(reduce(call, "product", call.value(0), read_axes(call)));
}
void map_l1(OnnxCall& call) {
  call.give(reduce(call, "sum", map_one(call, "abs", call.value(0)), read_axes(call)));
}
Value sum_of_squares(OnnxCall& call) {
  const Value x = call.value(0);
  return reduce(call, "sum", call.add("mul", {x, x}, {}, {}, "square"), read_axes(call));
}
void map_sum_square(OnnxCall& call) {
  call.give(sum_of_squares(call));
}
void map_l2(OnnxCall& call) {
  call.give(map_one(call, "sqrt", sum_of_squares(call)));
}
void map_log_sum(OnnxCall& call) {
  call.give(map_one(call, "log", reduce(call, "sum", call.value(0), read_axes(call))));
}

// log(sum(exp(x))) = m + log(sum(exp(x - m))) with the largest m, which cannot overflow; where that
// is no number to subtract, with 0.
void map_log_sum_exp(OnnxCall& call) {
  const Value x = call.value(0);
  const Axes axes = read_axes(call);
  if (axes.is_nothing) {  // the logarithm of one exponential
    call.give(Known(call.known(0)), 0);
    return;
  }
  Axes kept = axes;
  kept.keeps = true;
  Value largest = reduce(call, "max", x, kept);
  largest = call.add(
      "where",
      {map_one(call, "is_infinite", largest), call.number(0, call.type_of(largest).dtype), largest},
      {}, {}, "finite");
  const Value shifted = call.add("sub", {x, largest}, {}, {}, "shifted");
  const Value logarithm =
      map_one(call, "log", reduce(call, "sum", map_one(call, "exp", shifted), kept));
  const Value sum = call.add("add", {logarithm, largest}, {}, {}, "sum");
  if (axes.keeps) {
    call.give(sum);
    return;
  }
  Shape shape;
  for (std::size_t axis = 0; axis < call.type(0).rank(); ++axis)
    if (std::ranges::find(axes.axes, static_cast<std::int64_t>(axis)) == axes.axes.end())
      shape.push_back(call.type(0).shape[axis]);
  call.give(call.reshape(sum, shape, "squeezed"));
}

// Ours is of the last axis, and gives the first of equal ones. The last of equal ones is the first
// from the other end.
void arg_extreme(OnnxCall& call, bool is_largest) {
  Value x = call.value(0);
  const Type type = call.type_of(x);
  const std::size_t axis = axis_at(call, call.integer("axis", 0), type.rank());
  const bool takes_last = call.integer("select_last_index", 0) != 0;
  if (!is_largest) x = turned(call, x);
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < type.rank(); ++i)
    if (i != axis) order.push_back(static_cast<std::int64_t>(i));
  order.push_back(static_cast<std::int64_t>(axis));
  x = call.transpose(x, order, "last");
  if (takes_last) {
    std::vector<std::int64_t> begins(type.rank(), 0), steps(type.rank(), 1);
    begins.back() = steps.back() = -1;
    x = call.add("crop", {x}, {{"begins", begins}, {"steps", steps}}, {call.type_of(x)},
                 "reversed");
  }
  Value place = call.cast(call.add("argmax", {x}, {}, {}, "place"), DType::I64);
  if (takes_last) {
    if (!type.shape[axis].is_constant()) call.refuse("the last index of {} axes", to_text(type));
    const Value end = call.number(static_cast<double>(type.shape[axis].constant() - 1), DType::I64);
    place = call.add("sub", {end, place}, {}, {}, "from_front");
  }
  if (call.integer("keepdims", 1) != 0) {
    Shape shape = type.shape;
    shape[axis] = Size(1);
    place = call.reshape(place, shape, "kept");
  }
  call.give(place);
}
void map_arg_max(OnnxCall& call) {
  arg_extreme(call, true);
}
void map_arg_min(OnnxCall& call) {
  arg_extreme(call, false);
}

void map_cumulative_sum(OnnxCall& call) {
  const double axis = call.need_number(1, "the axis");
  call.give(call.add("cumulative_sum", {call.value(0)},
                     {{"axis", static_cast<std::int64_t>(axis)},
                      {"exclusive", call.integer("exclusive", 0) != 0},
                      {"reverse", call.integer("reverse", 0) != 0}}));
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "ArgMax", .map = map_arg_max},
      {.name = "ArgMin", .map = map_arg_min},
      {.name = "CumSum", .map = map_cumulative_sum},
      {.name = "ReduceL1", .map = map_l1},
      {.name = "ReduceL2", .map = map_l2},
      {.name = "ReduceLogSum", .map = map_log_sum},
      {.name = "ReduceLogSumExp", .map = map_log_sum_exp},
      {.name = "ReduceMax", .map = map_max},
      {.name = "ReduceMean", .map = map_mean},
      {.name = "ReduceMin", .map = map_min},
      {.name = "ReduceProd", .map = map_prod, .fold = fold_product},
      {.name = "ReduceSum", .map = map_sum},
      {.name = "ReduceSumSquare", .map = map_sum_square},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::reductions
