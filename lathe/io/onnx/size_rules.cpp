#include "lathe/io/onnx/size_rules.h"

#include <algorithm>

#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"

namespace lathe::io::onnx {
namespace {

// Whether all operands are arrays of sizes, and one of them is not simply constant: those are
// computed like any other constant.
bool are_sizes(const OnnxCall& call) {
  bool any_symbol = false;
  for (std::size_t i = 0; i < call.num_inputs(); ++i) {
    if (!call.has(i)) continue;
    if (!call.known(i).sizes) return false;
    any_symbol = any_symbol || !call.known(i).constant;
  }
  return any_symbol;
}

std::optional<AffineArray> affine_operand(const OnnxCall& call, std::size_t index) {
  const Known& known = call.known(index);
  if (known.affine) return known.affine;
  if (known.sizes && known.sizes->elements.size() == 1) return affine_of(*known.sizes);
  return std::nullopt;
}

bool are_affine(const OnnxCall& call) {
  bool any_free = false;
  for (std::size_t i = 0; i < call.num_inputs(); ++i) {
    if (!call.has(i) || !affine_operand(call, i)) return false;
    any_free = any_free || !call.known(i).constant;
  }
  return any_free && call.num_inputs() > 0;
}

// With the sign of the divisor.
std::int64_t remainder(std::int64_t x, std::int64_t y) {
  if (y == 0 || y == -1) return 0;
  const std::int64_t rest = x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// Whether some value has an axis of this size.
bool is_axis(const Graph& graph, const Size& size) {
  for (const NodeId node : graph.topological_order())
    for (const Type& type : graph.types(node))
      if (std::ranges::find(type.shape, size) != type.shape.end()) return true;
  return false;
}

std::optional<Size> compute(const Graph& graph, const std::string& op, const Size& a,
                            const Size& b) {
  const auto both = [&](auto function) -> std::optional<Size> {
    if (!a.is_constant() || !b.is_constant()) return std::nullopt;
    return Size(function(a.constant(), b.constant()));
  };
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") {
    if (b == Size(-1)) return Size(0) - a;  // the least number has no opposite
    if (a.is_constant() && b.is_constant())
      return b.constant() == 0 ? std::nullopt : std::optional(Size(a.constant() / b.constant()));
    return exact_quotient(a, b);
  }
  if (op == "Mod") {
    if (!a.is_constant() && exact_quotient(a, b)) return Size(0);
    return both(remainder);
  }
  // A size is compared where the answer is the same for all symbols from 1 up.
  const auto answer = [&](bool value) { return std::optional(Size(value ? 1 : 0)); };
  const Size ahead = a - b;
  const Size behind = b - a;
  const bool is_more = is_at_least(ahead, 1), is_less = is_at_least(behind, 1);
  const bool is_not_less = is_at_least(ahead, 0), is_not_more = is_at_least(behind, 0);
  if (op == "Equal") {
    if (a == b) return answer(true);
    if (is_more || is_less) return answer(false);
    // No axis is shorter than nothing: exporters ask whether one is -1, which stands for "as is".
    if (b.is_constant() && b.constant() < 0 && is_axis(graph, a)) return answer(false);
    if (a.is_constant() && a.constant() < 0 && is_axis(graph, b)) return answer(false);
    // An axis may be 1 in one run and more in the next.
    return std::nullopt;
  }
  if (op == "Greater") return is_more ? answer(true) : is_not_more ? answer(false) : std::nullopt;
  if (op == "Less") return is_less ? answer(true) : is_not_less ? answer(false) : std::nullopt;
  if (op == "GreaterOrEqual")
    return is_not_less ? answer(true) : is_less ? answer(false) : std::nullopt;
  if (op == "LessOrEqual")
    return is_not_more ? answer(true) : is_more ? answer(false) : std::nullopt;
  if (op == "Max" || op == "Min") {
    const bool takes_a = op == "Max" ? is_not_less : is_not_more;
    const bool takes_b = op == "Max" ? is_not_more : is_not_less;
    if (takes_a) return a;
    if (takes_b) return b;
  }
  return std::nullopt;
}

bool is_comparison(const std::string& op) {
  return op == "Equal" || op == "Greater" || op == "Less" || op == "GreaterOrEqual" ||
         op == "LessOrEqual";
}

std::vector<std::int64_t> broadcast_dims(const SizeArray& a, const SizeArray& b) {
  Type left{.dtype = a.dtype, .shape = {}}, right{.dtype = b.dtype, .shape = {}};
  for (const std::int64_t size : a.dims) left.shape.emplace_back(size);
  for (const std::int64_t size : b.dims) right.shape.emplace_back(size);
  std::vector<std::int64_t> dims;
  for (const Size& size : ops::broadcast_shapes("combine", left, right))
    dims.push_back(size.constant());
  return dims;
}

bool fold_size_pairs(OnnxCall& call) {
  const std::string& op = call.node().op;
  SizeArray result = *call.known(0).sizes;
  for (std::size_t i = 1; i < call.num_inputs(); ++i) {
    const SizeArray& other = *call.known(i).sizes;
    SizeArray next{.dtype = is_comparison(op) ? DType::Bool : result.dtype,
                   .dims = broadcast_dims(result, other)};
    const auto left = ops::broadcast_indices(result.dims, next.dims);
    const auto right = ops::broadcast_indices(other.dims, next.dims);
    for (std::size_t e = 0; e < left.size(); ++e) {
      const std::optional<Size> value =
          compute(call.graph(), op, result.elements[static_cast<std::size_t>(left[e])],
                  other.elements[static_cast<std::size_t>(right[e])]);
      if (!value) return false;
      next.elements.push_back(*value);
    }
    result = std::move(next);
  }
  call.give(std::move(result));
  return true;
}

// Numbers of axes are made equal by axes of 1 in front.
void lift(AffineArray& array, std::size_t rank) {
  while (array.shape.size() < rank) {
    array.shape.insert(array.shape.begin(), Size(1));
    array.slopes.insert(array.slopes.begin(), Size(0));
  }
}

// The largest and smallest element lie at the ends of the axes.
std::optional<bool> is_never_below(const AffineArray& array, std::int64_t bound) {
  Size smallest = array.offset;
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) {
    if (is_at_least(array.slopes[axis], 0)) continue;
    if (!is_at_least(Size(0) - array.slopes[axis], 0)) return std::nullopt;
    smallest += array.slopes[axis] * (array.shape[axis] - Size(1));
  }
  if (is_at_least(smallest, bound)) return true;
  return std::nullopt;
}

bool fold_affine_pairs(OnnxCall& call) {
  const std::string& op = call.node().op;
  if (call.num_inputs() != 2) return false;
  AffineArray a = *affine_operand(call, 0);
  AffineArray b = *affine_operand(call, 1);
  const std::size_t rank = std::max(a.shape.size(), b.shape.size());
  lift(a, rank);
  lift(b, rank);
  AffineArray result{.dtype = a.dtype};
  result.shape = ops::broadcast_shapes("combine", {.dtype = a.dtype, .shape = a.shape},
                                       {.dtype = b.dtype, .shape = b.shape});
  const auto is_number = [](const AffineArray& array) {
    return std::ranges::all_of(array.slopes, [](const Size& slope) { return slope == Size(0); });
  };
  result.slopes.resize(rank);
  if (op == "Add" || op == "Sub") {
    const Size sign = op == "Add" ? Size(1) : Size(-1);
    result.offset = a.offset + sign * b.offset;
    for (std::size_t axis = 0; axis < rank; ++axis)
      result.slopes[axis] = a.slopes[axis] + sign * b.slopes[axis];
    call.give(std::move(result));
    return true;
  }
  if (op == "Mul" && (is_number(a) || is_number(b))) {
    const AffineArray& number = is_number(a) ? a : b;
    const AffineArray& array = is_number(a) ? b : a;
    result.offset = array.offset * number.offset;
    for (std::size_t axis = 0; axis < rank; ++axis)
      result.slopes[axis] = array.slopes[axis] * number.offset;
    call.give(std::move(result));
    return true;
  }
  // A place is never below 0, which some masks ask.
  if (op == "GreaterOrEqual" && is_number(b) && b.offset.is_constant() &&
      is_never_below(a, b.offset.constant()).value_or(false)) {
    call.give(call.add("constant", {}, {{"values", std::vector<double>{1.0}}},
                       {{.dtype = DType::Bool, .shape = result.shape}}));
    return true;
  }
  return false;
}

}  // namespace

bool fold_arithmetic(OnnxCall& call) {
  if (call.num_inputs() < 1) return false;
  for (std::size_t i = 0; i < call.num_inputs(); ++i)
    if (!call.has(i)) return false;
  if (are_sizes(call) && fold_size_pairs(call)) return true;
  if (!are_affine(call)) return false;
  return fold_affine_pairs(call);
}

bool fold_where(OnnxCall& call) {
  if (call.num_inputs() != 3 || !call.has(0) || !call.has(1) || !call.has(2) || !are_sizes(call))
    return false;
  const SizeArray& condition = *call.known(0).sizes;
  const SizeArray& a = *call.known(1).sizes;
  const SizeArray& b = *call.known(2).sizes;
  SizeArray result{.dtype = a.dtype, .dims = broadcast_dims(a, b)};
  result.dims = broadcast_dims(condition, result);
  const auto chosen = ops::broadcast_indices(condition.dims, result.dims);
  const auto left = ops::broadcast_indices(a.dims, result.dims);
  const auto right = ops::broadcast_indices(b.dims, result.dims);
  for (std::size_t e = 0; e < chosen.size(); ++e) {
    const Size& answer = condition.elements[static_cast<std::size_t>(chosen[e])];
    if (!answer.is_constant()) return false;
    result.elements.push_back(answer.constant() != 0
                                  ? a.elements[static_cast<std::size_t>(left[e])]
                                  : b.elements[static_cast<std::size_t>(right[e])]);
  }
  call.give(std::move(result));
  return true;
}

bool fold_cast(OnnxCall& call) {
  const Known& known = call.known(0);
  if (known.constant || (!known.sizes && !known.affine)) return false;
  const std::optional<DType> dtype = dtype_of_onnx(call.integer("to", 0));
  if (dtype != DType::I64 && dtype != DType::I32) return false;
  Known result = known;
  result.value = kNone;
  if (result.sizes) result.sizes->dtype = *dtype;
  if (result.affine) result.affine->dtype = *dtype;
  call.give(std::move(result), 0);
  return true;
}

bool fold_concat(OnnxCall& call) {
  if (call.num_inputs() < 1) return false;
  for (std::size_t i = 0; i < call.num_inputs(); ++i)
    if (!call.has(i)) return false;
  if (are_sizes(call)) {
    SizeArray result{.dtype = call.known(0).sizes->dtype, .dims = {0}};
    for (std::size_t i = 0; i < call.num_inputs(); ++i) {
      const SizeArray& part = *call.known(i).sizes;
      if (part.dims.size() != 1) return false;
      result.elements.insert(result.elements.end(), part.elements.begin(), part.elements.end());
    }
    result.dims[0] = static_cast<std::int64_t>(result.elements.size());
    call.give(std::move(result));
    return true;
  }
  if (!are_affine(call)) return false;
  // Indices of several axes side by side.
  Known result;
  for (std::size_t i = 0; i < call.num_inputs(); ++i) {
    AffineArray part = *affine_operand(call, i);
    const std::size_t rank = part.shape.size();
    const std::int64_t axis = call.integer("axis", 0);
    if (rank == 0 || (axis != -1 && axis != static_cast<std::int64_t>(rank) - 1) ||
        part.shape.back() != Size(1))
      return false;
    if (i > 0 && part.shape != result.tuple[0].shape) return false;
    result.tuple.push_back(std::move(part));
  }
  call.give(std::move(result), 0);
  return true;
}

bool fold_expand(OnnxCall& call) {
  const std::optional<AffineArray> array = affine_operand(call, 0);
  if (!array || call.known(0).constant || !call.has(1) || !call.known(1).sizes) return false;
  AffineArray result = *array;
  const Shape target = call.known(1).sizes->elements;
  lift(result, target.size());
  Shape wanted = target;
  while (wanted.size() < result.shape.size()) wanted.insert(wanted.begin(), Size(1));
  result.shape = ops::broadcast_shapes("expand", {.dtype = result.dtype, .shape = result.shape},
                                       {.dtype = result.dtype, .shape = wanted});
  call.give(std::move(result));
  return true;
}

bool fold_gather(OnnxCall& call) {
  if (!call.has(0) || !call.has(1)) return false;
  const Known& data = call.known(0);
  // Some sizes of a shape.
  if (data.sizes && !data.constant && data.sizes->dims.size() == 1 && call.constant(1) != nullptr) {
    const Tensor& indices = *call.constant(1);
    if (is_floating(indices.dtype())) return false;
    SizeArray result{.dtype = data.sizes->dtype, .dims = indices.dims()};
    const auto count = static_cast<std::int64_t>(data.sizes->elements.size());
    for (std::int64_t index : ops::read_integers(indices)) {
      if (index < -count || index >= count) call.refuse("index {} of {} sizes", index, count);
      result.elements.push_back(
          data.sizes->elements[static_cast<std::size_t>(index < 0 ? index + count : index)]);
    }
    call.give(std::move(result));
    return true;
  }
  // All elements of an axis in their order, as places count them: the axis in another shape.
  if (data.value.is_none() || !call.known(1).affine || call.known(1).constant) return false;
  const AffineArray& places = *call.known(1).affine;
  const Type type = call.type(0);
  const std::size_t axis = axis_at(call, call.integer("axis", 0), type.rank());
  if (places.offset != Size(0)) return false;
  Size count = 1;
  for (std::size_t i = places.shape.size(); i-- > 0;) {
    if (places.shape[i] == Size(1)) continue;
    if (places.slopes[i] != count) return false;
    count *= places.shape[i];
  }
  if (count != type.shape[axis]) return false;
  Shape shape(type.shape.begin(), type.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), places.shape.begin(), places.shape.end());
  shape.insert(shape.end(), type.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
               type.shape.end());
  call.give(call.add("reshape", {data.value}, {}, {{.dtype = type.dtype, .shape = shape}}));
  return true;
}

// Elements at places that count each axis from its start to its end, the axes in their order.
bool fold_gather_nd(OnnxCall& call) {
  if (call.integer("batch_dims", 0) != 0 || !call.has(0) || !call.has(1)) return false;
  const std::vector<AffineArray>& tuple = call.known(1).tuple;
  const Known& data = call.known(0);
  if (tuple.empty() || data.value.is_none()) return false;
  const Type type = call.type(0);
  if (tuple.size() > type.rank()) return false;
  const std::size_t places = tuple[0].shape.size() - 1;
  std::size_t next = 0;
  for (std::size_t i = 0; i < tuple.size(); ++i) {
    if (tuple[i].offset != Size(0)) return false;
    std::optional<std::size_t> along;
    for (std::size_t axis = 0; axis < places; ++axis) {
      if (tuple[i].slopes[axis] == Size(0)) continue;
      if (along || tuple[i].slopes[axis] != Size(1)) return false;
      along = axis;
    }
    if (!along || *along < next || tuple[0].shape[*along] != type.shape[i]) return false;
    next = *along + 1;
  }
  // What counts no axis has size 1, or the result repeats.
  Shape shape(tuple[0].shape.begin(), tuple[0].shape.end() - 1);
  Shape spread = shape;
  for (std::size_t axis = 0; axis < places; ++axis) {
    bool is_counted = false;
    for (const AffineArray& part : tuple) is_counted = is_counted || part.slopes[axis] != Size(0);
    if (!is_counted) spread[axis] = Size(1);
  }
  for (auto* target : {&shape, &spread})
    target->insert(target->end(), type.shape.begin() + static_cast<std::ptrdiff_t>(tuple.size()),
                   type.shape.end());
  const Value reshaped =
      call.add("reshape", {data.value}, {}, {{.dtype = type.dtype, .shape = spread}});
  call.give(call.broadcast(reshaped, shape));
  return true;
}

bool fold_product(OnnxCall& call) {
  const Known& known = call.known(0);
  if (known.constant || !known.sizes || known.sizes->dims.size() != 1) return false;
  Size product = 1;
  for (const Size& size : known.sizes->elements) product *= size;
  SizeArray result{.dtype = known.sizes->dtype, .elements = {product}};
  if (call.integer("keepdims", 1) != 0) result.dims = {1};
  call.give(std::move(result));
  return true;
}

bool fold_slice(OnnxCall& call) {
  const Known& known = call.known(0);
  if (known.constant || !known.sizes || known.sizes->dims.size() != 1) return false;
  const std::optional<std::vector<std::int64_t>> starts = call.integers_of("starts", 1);
  const std::optional<std::vector<std::int64_t>> ends = call.integers_of("ends", 2);
  const std::optional<std::vector<std::int64_t>> steps = call.integers_of("steps", 4);
  if (!starts || !ends || starts->size() != 1 || ends->size() != 1) return false;
  const auto size = static_cast<std::int64_t>(known.sizes->elements.size());
  const std::int64_t step = steps && !steps->empty() ? (*steps)[0] : 1;
  if (step != 1) return false;
  const auto place = [&](std::int64_t index) {
    if (index < 0) index = index < -size ? 0 : index + size;
    return std::min(index, size);
  };
  SizeArray result{.dtype = known.sizes->dtype};
  for (std::int64_t i = place((*starts)[0]); i < place((*ends)[0]); ++i)
    result.elements.push_back(known.sizes->elements[static_cast<std::size_t>(i)]);
  result.dims = {static_cast<std::int64_t>(result.elements.size())};
  call.give(std::move(result));
  return true;
}

}  // namespace lathe::io::onnx
