#include <cmath>

#include "lathe/io/onnx/onnx_op.h"
#include "lathe/ops/elements.h"

// Ops that make arrays out of little: constants, ranges, ones along a diagonal or at an index.
namespace lathe::io::onnx::sources {
namespace {

void map_constant(OnnxCall& call) {
  const OnnxNode& node = call.node();
  if (const auto found = node.attributes.find("value"); found != node.attributes.end()) {
    if (const Tensor* tensor = std::get_if<Tensor>(&found->second)) {
      call.give(Tensor(*tensor));
      return;
    }
    call.refuse("its value is no array");
  }
  if (call.has_attribute("value_int"))
    call.give(Tensor::from<std::int64_t>({}, {call.integer("value_int", 0)}));
  else if (call.has_attribute("value_float"))
    call.give(Tensor::from<float>({}, {static_cast<float>(call.real("value_float", 0))}));
  else if (call.has_attribute("value_ints")) {
    const std::vector<std::int64_t> values = call.integers("value_ints");
    call.give(Tensor::from<std::int64_t>({static_cast<std::int64_t>(values.size())},
                                         std::span<const std::int64_t>(values)));
  } else if (const auto found = node.attributes.find("value_floats");
             found != node.attributes.end() &&
             std::holds_alternative<std::vector<double>>(found->second)) {
    std::vector<float> values;
    for (const double value : std::get<std::vector<double>>(found->second))
      values.push_back(static_cast<float>(value));
    call.give(Tensor::from<float>({static_cast<std::int64_t>(values.size())},
                                  std::span<const float>(values)));
  } else {
    call.refuse("it has no value that is a number or an array");
  }
}

// The same number everywhere: a size if it is a small array of them, else an array of any shape.
bool fold_constant_of_shape(OnnxCall& call) {
  const std::vector<Size> shape = call.need_sizes(0, "the shape");
  Tensor value = Tensor::from<float>({1}, {0.0F});
  if (const auto found = call.node().attributes.find("value");
      found != call.node().attributes.end()) {
    const Tensor* given = std::get_if<Tensor>(&found->second);
    if (given == nullptr || given->num_elements() != 1) call.refuse("its value is no number");
    value = *given;
  }
  std::vector<std::int64_t> dims;
  for (const Size& size : shape) {
    if (size.is_constant() && size.constant() < 0) call.refuse("an axis of {}", size.constant());
    if (size.is_constant()) dims.push_back(size.constant());
  }
  constexpr std::int64_t kMostElements = 1024;
  if (dims.size() == shape.size() && num_elements(dims) <= kMostElements) {
    Tensor filled(value.dtype(), dims);
    ops::copy_elements(
        value, std::vector<std::int64_t>(static_cast<std::size_t>(filled.num_elements()), 0),
        filled);
    call.give(std::move(filled));
    return true;
  }
  call.give(call.add("constant", {}, {{"values", std::vector<double>{value.at(0)}}},
                     {{.dtype = value.dtype(), .shape = shape}}));
  return true;
}

void never(OnnxCall& call) {
  call.refuse("is not known before the model runs");
}

bool fold_range(OnnxCall& call) {
  for (std::size_t i = 0; i < 3; ++i)
    if (!call.has(i)) call.refuse("operand {} is missing", i);
  // Of numbers, as many as fit; of sizes, in steps of one.
  const Tensor* start = call.constant(0);
  const Tensor* limit = call.constant(1);
  const Tensor* delta = call.constant(2);
  if (start != nullptr && limit != nullptr && delta != nullptr) {
    if (start->num_elements() != 1 || limit->num_elements() != 1 || delta->num_elements() != 1)
      call.refuse("its operands are no numbers");
    const double from = start->at(0), step = delta->at(0);
    const double count = std::max(0.0, std::ceil((limit->at(0) - from) / step));
    constexpr double kMost = 1 << 24;
    if (!(count <= kMost)) call.refuse("{} numbers", count);
    Tensor values(start->dtype(), {static_cast<std::int64_t>(count)});
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < values.num_elements(); ++i)
      numbers.push_back(from + static_cast<double>(i) * step);
    ops::write_elements(values, numbers);
    call.give(std::move(values));
    return true;
  }
  const auto size_at = [&](std::size_t index) -> Size {
    const Known& known = call.known(index);
    if (known.sizes && known.sizes->elements.size() == 1) return known.sizes->elements[0];
    call.refuse("{} is computed while the model runs, and must be known before",
                index == 0   ? "the start"
                : index == 1 ? "the limit"
                             : "the step");
  };
  if (size_at(2) != Size(1))
    call.refuse("steps of {} up to {}", size_at(2).text(), size_at(1).text());
  call.give(AffineArray{.dtype = call.known(1).sizes->dtype,
                        .shape = {size_at(1) - size_at(0)},
                        .offset = size_at(0),
                        .slopes = {Size(1)}});
  return true;
}

// A range along one of `rank` axes, in place `axis`.
Value counted(OnnxCall& call, const Size& size, std::size_t axis, std::size_t rank) {
  const Value range = call.add("range", {}, {}, {{.dtype = DType::I64, .shape = {size}}}, "range");
  Shape shape(rank, Size(1));
  shape[axis] = size;
  return call.reshape(range, shape, "along");
}

// What lies above or below a diagonal is 0.
void map_trilu(OnnxCall& call) {
  const Type x = call.type(0);
  if (x.rank() < 2) call.refuse("{} is no matrix", to_text(x));
  const double diagonal = call.has(1) ? call.need_number(1, "the diagonal") : 0;
  const bool is_upper = call.integer("upper", 1) != 0;
  const Value row = counted(call, x.axis(-2), 0, 2);
  const Value column = counted(call, x.axis(-1), 1, 2);
  const Value shifted =
      diagonal == 0 ? row
                    : call.add("add", {row, call.number(diagonal, DType::I64)}, {}, {}, "diagonal");
  const Value is_kept =
      call.add(is_upper ? "greater_equal" : "less_equal", {column, shifted}, {}, {}, "kept");
  call.give(call.add("where", {is_kept, call.value(0), call.number(0, x.dtype)}));
}

void map_eye_like(OnnxCall& call) {
  const Type x = call.type(0);
  if (x.rank() != 2) call.refuse("{} is no matrix", to_text(x));
  const std::optional<DType> dtype =
      call.has_attribute("dtype") ? dtype_of_onnx(call.integer("dtype", 1)) : x.dtype;
  if (!dtype) call.refuse("element type {} is not supported", call.integer("dtype", 1));
  const Value row = counted(call, x.shape[0], 0, 2);
  const Value column = counted(call, x.shape[1], 1, 2);
  const Value shifted =
      call.add("add", {row, call.number(static_cast<double>(call.integer("k", 0)), DType::I64)}, {},
               {}, "diagonal");
  call.give(call.cast(call.add("equal", {column, shifted}), *dtype));
}

// Indices count from either end; one outside gives no 1.
void map_one_hot(OnnxCall& call) {
  const double depth = call.need_number(1, "the depth");
  if (!(depth >= 1 && depth <= (1 << 24))) call.refuse("a depth of {}", depth);
  const Type indices = call.type(0);
  const std::size_t axis = axis_at(call, call.integer("axis", -1), indices.rank() + 1);
  const Size size(static_cast<std::int64_t>(depth));
  Shape spread = indices.shape;
  spread.insert(spread.begin() + static_cast<std::ptrdiff_t>(axis), Size(1));
  const Value places = call.reshape(call.cast(call.value(0), DType::I64), spread, "places");
  const Value zero = call.number(0, DType::I64);
  const Value from_front = call.add(
      "where",
      {call.add("less", {places, zero}, {}, {}, "is_negative"),
       call.add("add", {places, call.number(depth, DType::I64)}, {}, {}, "from_end"), places},
      {}, {}, "from_front");
  const Value is_here =
      call.add("equal", {from_front, counted(call, size, axis, spread.size())}, {}, {}, "is_here");
  const Value values = call.value(2);
  const auto pick = [&](std::int64_t index) {
    return call.add("select", {values}, {{"axis", std::int64_t{0}}, {"index", index}}, {},
                    index == 0 ? "off" : "on");
  };
  call.give(call.add("where", {is_here, pick(1), pick(0)}));
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "Constant", .map = map_constant},
      {.name = "ConstantOfShape", .map = never, .fold = fold_constant_of_shape},
      {.name = "EyeLike", .map = map_eye_like},
      {.name = "OneHot", .map = map_one_hot},
      {.name = "Range", .map = never, .fold = fold_range},
      {.name = "Trilu", .map = map_trilu},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::sources
