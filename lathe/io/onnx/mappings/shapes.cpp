#include <algorithm>
#include <limits>

#include "lathe/io/onnx/onnx_op.h"
#include "lathe/io/onnx/size_reshapes.h"
#include "lathe/io/onnx/size_rules.h"

// Ops that say or change shapes: elements keep their values.
namespace lathe::io::onnx::shapes {
namespace {

SizeArray vector_of(Shape sizes) {
  SizeArray result{.dims = {static_cast<std::int64_t>(sizes.size())}};
  result.elements = std::move(sizes);
  return result;
}

// Some of the shape since opset 15.
bool fold_shape(OnnxCall& call) {
  const Shape shape = call.type(0).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto place = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t begin = place(call.integer("start", 0));
  const std::int64_t end = std::max(begin, place(call.integer("end", rank)));
  call.give(vector_of(Shape(shape.begin() + begin, shape.begin() + end)));
  return true;
}

bool fold_size(OnnxCall& call) {
  call.give(SizeArray{.elements = {call.type(0).num_elements()}});
  return true;
}

void never(OnnxCall& call) {
  call.refuse("is not known before the model runs");
}

Shape reshaped(OnnxCall& call) {
  const Type x = call.type(0);
  const std::vector<Size> wanted = call.has_attribute("shape") ? [&] {
    std::vector<Size> sizes;
    for (const std::int64_t size : call.integers("shape")) sizes.emplace_back(size);
    return sizes;
  }()
                                                               : call.need_sizes(1, "the shape");
  const bool allows_zero = call.integer("allowzero", 0) != 0;
  Shape shape;
  std::optional<std::size_t> open;
  for (const Size& size : wanted) {
    if (size == Size(0) && !allows_zero) {
      if (shape.size() >= x.rank())
        call.refuse("axis {} of {} is to be kept, and there is none", shape.size(), to_text(x));
      shape.push_back(x.shape[shape.size()]);
    } else if (size == Size(-1)) {
      if (open) call.refuse("two axes are left open");
      open = shape.size();
      shape.emplace_back(1);
    } else if (size.is_constant() && size.constant() < 0) {
      call.refuse("an axis of {} is asked for", size.constant());
    } else {
      shape.push_back(size);
    }
  }
  if (open) {
    Size rest = 1;
    for (const Size& size : shape) rest *= size;
    // An empty array has room for any axis.
    const std::optional<Size> quotient = exact_quotient(x.num_elements(), rest);
    if (!quotient && !(x.num_elements() == Size(0)))
      call.refuse("{} has no place for {} elements each", to_text(x), rest.text());
    shape[*open] = quotient.value_or(Size(0));
  }
  return shape;
}

void map_reshape(OnnxCall& call) {
  Shape shape = reshaped(call);
  // A single row that was written down when the file was made is as many as there are.
  const Type x = call.type(0);
  Size count = 1;
  for (const Size& size : shape) count *= size;
  if (!shape.empty() && shape[0] == Size(1) && x.rank() > 0 && !x.shape[0].is_constant() &&
      count * x.shape[0] == x.num_elements())
    shape[0] = x.shape[0];
  call.give(call.reshape(call.value(0), shape));
}

void map_transpose(OnnxCall& call) {
  const std::size_t rank = call.type(0).rank();
  std::vector<std::int64_t> reversed;
  for (std::size_t i = rank; i-- > 0;) reversed.push_back(static_cast<std::int64_t>(i));
  call.give(call.transpose(call.value(0), call.integers("perm", reversed)));
}

void map_squeeze(OnnxCall& call) {
  const Type x = call.type(0);
  const std::optional<std::vector<std::int64_t>> axes = call.integers_of("axes", 1);
  std::vector<bool> is_gone(x.rank(), false);
  if (axes)
    for (const std::int64_t axis : *axes) {
      const std::size_t position = axis_at(call, axis, x.rank());
      if (x.shape[position] != Size(1)) call.refuse("axis {} of {} is not 1", axis, to_text(x));
      is_gone[position] = true;
    }
  Shape shape;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (!axes && !x.shape[axis].is_constant() && !is_at_least(x.shape[axis], 2))
      call.refuse("no axes are given, and axis {} of {} may be 1 in one run and more in the next",
                  axis, to_text(x));
    if (axes ? !is_gone[axis] : x.shape[axis] != Size(1)) shape.push_back(x.shape[axis]);
  }
  call.give(call.reshape(call.value(0), shape));
}

void map_unsqueeze(OnnxCall& call) {
  const Type x = call.type(0);
  const std::optional<std::vector<std::int64_t>> axes = call.integers_of("axes", 1);
  if (!axes) call.refuse("no axes are given");
  const std::size_t rank = x.rank() + axes->size();
  if (rank > 64) call.refuse("makes {} axes", rank);
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t axis : *axes) {
    const std::size_t position = axis_at(call, axis, rank);
    if (is_new[position]) call.refuse("axis {} is new twice", axis);
    is_new[position] = true;
  }
  Shape shape;
  std::size_t next = 0;
  for (std::size_t axis = 0; axis < rank; ++axis)
    shape.push_back(is_new[axis] ? Size(1) : x.shape[next++]);
  call.give(call.reshape(call.value(0), shape));
}

void map_flatten(OnnxCall& call) {
  const Type x = call.type(0);
  const auto rank = static_cast<std::int64_t>(x.rank());
  std::int64_t axis = call.integer("axis", 1);
  if (axis < -rank || axis > rank) call.refuse("axis {} of {}", axis, to_text(x));
  if (axis < 0) axis += rank;
  Shape shape(2, Size(1));
  for (std::int64_t i = 0; i < rank; ++i)
    shape[i < axis ? 0 : 1] *= x.shape[static_cast<std::size_t>(i)];
  call.give(call.reshape(call.value(0), shape));
}

void map_concat(OnnxCall& call) {
  std::vector<Value> parts;
  for (std::size_t i = 0; i < call.num_inputs(); ++i) parts.push_back(call.value(i));
  if (parts.size() == 1) {
    call.give(Known(call.known(0)), 0);
    return;
  }
  call.give(call.add("concat", std::move(parts), {{"axis", call.integer("axis", 1)}}));
}

void map_split(OnnxCall& call) {
  const Type x = call.type(0);
  const std::size_t axis = axis_at(call, call.integer("axis", 0), x.rank());
  std::vector<std::int64_t> sizes;
  if (const auto given = call.integers_of("split", 1)) {
    sizes = *given;
  } else {
    const Size& size = x.shape[axis];
    if (!size.is_constant()) call.refuse("axis {} of {} into equal parts", axis, to_text(x));
    const auto count = std::max<std::int64_t>(static_cast<std::int64_t>(call.num_outputs()), 1);
    if (const std::int64_t said = call.integer("num_outputs", count); said != count)
      call.refuse("num_outputs is {}, and there are {}", said, count);
    // The last part is smaller where it does not come out even, since opset 18.
    const std::int64_t part = (size.constant() + count - 1) / count;
    const std::int64_t last = size.constant() - (count - 1) * part;
    if (last < 0 || (call.opset() < 18 && last != part))
      call.refuse("axis {} of {} does not come out even in {} parts", axis, to_text(x), count);
    sizes.assign(static_cast<std::size_t>(count), part);
    sizes.back() = last;
  }
  if (sizes.size() != call.num_outputs())
    call.refuse("{} sizes for {} outputs", sizes.size(), call.num_outputs());
  const Value parts = call.add("split", {call.value(0)},
                               {{"axis", static_cast<std::int64_t>(axis)}, {"sizes", sizes}});
  for (std::size_t i = 0; i < sizes.size(); ++i)
    call.give(Value{parts.node, static_cast<std::int32_t>(i)}, i);
}

// One axis of a Slice: where it begins, and how many it takes.
struct Cut {
  std::int64_t begin = 0, step = 1;
  Size count;
};

Cut cut_axis(OnnxCall& call, const Size& size, const Size& start, const Size& end,
             std::int64_t step) {
  if (step == 0) call.refuse("a step of 0");
  if (size.is_constant() && start.is_constant() && end.is_constant()) {
    const std::int64_t n = size.constant();
    const auto clamp = [&](std::int64_t index) {
      // Down from a huge number, which may mean the end, without overflow.
      if (index < 0) index = index < -n ? std::int64_t{-1} - (step > 0 ? -1 : 0) : index + n;
      return step > 0 ? std::clamp<std::int64_t>(index, 0, n)
                      : std::clamp<std::int64_t>(index, -1, n - 1);
    };
    // Backwards from before the front is from the front: ONNX, unlike numpy, has its element then.
    const std::int64_t first =
        std::max<std::int64_t>(clamp(start.constant()), std::min<std::int64_t>(0, n - 1));
    const std::int64_t last = clamp(end.constant());
    const std::int64_t distance = step > 0 ? last - first : first - last;
    const std::int64_t stride = step == std::numeric_limits<std::int64_t>::min()
                                    ? std::numeric_limits<std::int64_t>::max()
                                    : (step > 0 ? step : -step);
    const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    return {first, count > 1 ? step : 1, Size(count)};
  }
  if (step != 1) call.refuse("steps of {} along an axis of {}", step, size.text());
  // With symbols, from the front or the end of the axis. The largest number of 32 bits and all
  // beyond are how exporters write "to the end".
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  Size begin = start, stop = end;
  if (begin.is_constant() && begin.constant() <= -kFar) begin = Size(0);
  if (begin.is_constant() && begin.constant() < 0) begin += size;
  if (stop.is_constant() && stop.constant() >= kFar) stop = size;
  if (stop.is_constant() && stop.constant() < 0) stop += size;
  if (!begin.is_constant()) {
    // From the end: the axis is at least as long, or the slice fails when it runs.
    const Size from_end = begin - size;
    if (!from_end.is_constant()) call.refuse("begins at {} of {}", begin.text(), size.text());
    return {from_end.constant(), 1, stop - begin};
  }
  return {begin.constant(), 1, stop - begin};
}

// Whether a constant counts 0, 1, .. along its last axis, and has no other.
bool is_count(const Tensor* tensor) {
  if (tensor == nullptr || tensor->dtype() != DType::I64 || tensor->rank() == 0 ||
      tensor->dims().back() != tensor->num_elements())
    return false;
  for (std::int64_t i = 0; i < tensor->num_elements(); ++i)
    if (tensor->at(i) != static_cast<double>(i)) return false;
  return true;
}

void map_slice(OnnxCall& call) {
  const Type x = call.type(0);
  std::vector<Size> starts, ends;
  const auto read = [&](const char* attribute, std::size_t operand) {
    std::vector<Size> sizes;
    if (call.has_attribute(attribute))
      for (const std::int64_t size : call.integers(attribute)) sizes.emplace_back(size);
    else
      sizes = call.need_sizes(operand, attribute);
    return sizes;
  };
  starts = read("starts", 1);
  ends = read("ends", 2);
  std::vector<std::int64_t> axes;
  if (const auto given = call.integers_of("axes", 3))
    axes = *given;
  else
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  std::vector<std::int64_t> steps(axes.size(), 1);
  if (const auto given = call.integers_of("steps", 4)) steps = *given;
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size())
    call.refuse("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(),
                steps.size());
  std::vector<std::int64_t> begins(x.rank(), 0), strides(x.rank(), 1);
  Shape shape = x.shape;
  int num_cut = 0;
  std::size_t only = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_at(call, axes[i], x.rank());
    const Cut cut = cut_axis(call, x.shape[axis], starts[i], ends[i], steps[i]);
    if (cut.count == x.shape[axis] && cut.begin == 0 && cut.step == 1) continue;
    begins[axis] = cut.begin;
    strides[axis] = cut.step;
    shape[axis] = cut.count;
    only = axis;
    ++num_cut;
  }
  if (num_cut == 0) {
    call.give(Known(call.known(0)), 0);
    return;
  }
  // The front of a table of positions, as long as the sequences are, is a range.
  if (is_count(call.constant(0)) && only + 1 == x.rank() && num_cut == 1 && begins[only] == 0 &&
      strides[only] == 1 && !shape[only].is_constant()) {
    AffineArray places{.dtype = x.dtype, .shape = shape, .offset = Size(0)};
    places.slopes.assign(x.rank(), Size(0));
    places.slopes[only] = Size(1);
    call.give(std::move(places));
    return;
  }
  // Of one axis, the op that packs and is fast.
  const Size end = Size(begins[only]) + shape[only];
  if (num_cut == 1 && strides[only] == 1 && begins[only] >= 0) {
    const Size from_end = end - x.shape[only];
    if (end.is_constant() || (from_end.is_constant() && from_end.constant() <= 0)) {
      Attributes attributes{{"axis", static_cast<std::int64_t>(only)}, {"begin", begins[only]}};
      if (end.is_constant())
        attributes["end"] = end.constant();
      else if (from_end.constant() < 0)
        attributes["end"] = from_end.constant();
      call.give(call.add("slice", {call.value(0)}, std::move(attributes)));
      return;
    }
  }
  call.give(call.add("crop", {call.value(0)}, {{"begins", begins}, {"steps", strides}},
                     {{.dtype = x.dtype, .shape = shape}}));
}

void map_expand(OnnxCall& call) {
  const Type x = call.type(0);
  Shape wanted = call.need_sizes(1, "the shape");
  Shape shape = x.shape;
  while (shape.size() < wanted.size()) shape.insert(shape.begin(), Size(1));
  while (wanted.size() < shape.size()) wanted.insert(wanted.begin(), Size(1));
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == Size(1))
      shape[axis] = wanted[axis];
    else if (wanted[axis] != Size(1) && wanted[axis] != shape[axis])
      call.refuse("{} to {}: sizes {} and {} differ", to_text(x), to_text(wanted),
                  shape[axis].text(), wanted[axis].text());
  }
  call.give(call.broadcast(call.value(0), shape));
}

// x with each axis repeated: an axis of the count before each, then both made one.
void map_tile(OnnxCall& call) {
  const Type x = call.type(0);
  const std::vector<Size> repeats = call.need_sizes(1, "the repeats");
  if (repeats.size() != x.rank()) call.refuse("{} repeats of {} axes", repeats.size(), x.rank());
  Shape spread, broadcast, result;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (repeats[axis].is_constant() && repeats[axis].constant() < 0)
      call.refuse("{} repeats", repeats[axis].constant());
    spread.insert(spread.end(), {Size(1), x.shape[axis]});
    broadcast.insert(broadcast.end(), {repeats[axis], x.shape[axis]});
    result.push_back(repeats[axis] * x.shape[axis]);
  }
  const Value value = call.reshape(call.value(0), spread, "spread");
  call.give(call.reshape(call.broadcast(value, broadcast), result));
}

void map_pad(OnnxCall& call) {
  const Type x = call.type(0);
  std::vector<std::int64_t> given =
      call.opset() < 11 ? call.integers("pads") : call.need_integers(1, "the pads");
  double value = call.real("value", 0.0);
  if (call.has(2)) value = call.need_number(2, "the constant");
  std::vector<std::int64_t> pads = given;
  if (call.has(3)) {
    const std::vector<std::int64_t> axes = call.need_integers(3, "the axes");
    if (given.size() != 2 * axes.size())
      call.refuse("{} pads of {} axes", given.size(), axes.size());
    pads.assign(2 * x.rank(), 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = axis_at(call, axes[i], x.rank());
      pads[axis] = given[i];
      pads[axis + x.rank()] = given[i + axes.size()];
    }
  }
  call.give(call.add("pad", {call.value(0)},
                     {{"pads", pads}, {"mode", call.text("mode", "constant")}, {"value", value}}));
}

// Channels become blocks of pixels: depth-column-row or column-row-depth order.
void map_depth_to_space(OnnxCall& call) {
  const Type x = call.type(0);
  const Size block(call.integer("blocksize", 1));
  if (x.rank() != 4 || block == Size(0))
    call.refuse("{} by blocks of {}", to_text(x), block.text());
  const std::optional<Size> depth = exact_quotient(x.shape[1], block * block);
  if (!depth) call.refuse("{} channels by blocks of {}", x.shape[1].text(), block.text());
  const std::string mode = call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") call.refuse("mode \"{}\" is not supported", mode);
  const bool is_crd = mode == "CRD";
  const Size &n = x.shape[0], &h = x.shape[2], &w = x.shape[3];
  const Value spread = call.reshape(
      call.value(0),
      is_crd ? Shape{n, *depth, block, block, h, w} : Shape{n, block, block, *depth, h, w},
      "blocks");
  const std::vector<std::int64_t> axes = is_crd ? std::vector<std::int64_t>{0, 1, 4, 2, 5, 3}
                                                : std::vector<std::int64_t>{0, 3, 4, 1, 5, 2};
  call.give(call.reshape(call.transpose(spread, axes, "order"), {n, *depth, h * block, w * block}));
}

void map_space_to_depth(OnnxCall& call) {
  const Type x = call.type(0);
  const Size block(call.integer("blocksize", 1));
  if (x.rank() != 4 || block == Size(0))
    call.refuse("{} by blocks of {}", to_text(x), block.text());
  const std::optional<Size> h = exact_quotient(x.shape[2], block);
  const std::optional<Size> w = exact_quotient(x.shape[3], block);
  if (!h || !w) call.refuse("{} by blocks of {}", to_text(x), block.text());
  const Value spread =
      call.reshape(call.value(0), {x.shape[0], x.shape[1], *h, block, *w, block}, "blocks");
  call.give(call.reshape(call.transpose(spread, {0, 3, 5, 1, 2, 4}, "order"),
                         {x.shape[0], x.shape[1] * block * block, *h, *w}));
}

void map_cast(OnnxCall& call) {
  const std::optional<DType> dtype = dtype_of_onnx(call.integer("to", 0));
  if (!dtype) call.refuse("element type {} is not supported", call.integer("to", 0));
  if (call.type(0).dtype == *dtype) {
    call.give(Known(call.known(0)), 0);
    return;
  }
  call.give(call.cast(call.value(0), *dtype));
}

void map_cast_like(OnnxCall& call) {
  call.give(call.cast(call.value(0), call.type(1).dtype));
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "Cast", .map = map_cast, .fold = fold_cast},
      {.name = "CastLike", .map = map_cast_like},
      {.name = "Concat", .map = map_concat, .fold = fold_concat},
      {.name = "DepthToSpace", .map = map_depth_to_space},
      {.name = "Expand", .map = map_expand, .fold = fold_expand},
      {.name = "Flatten", .map = map_flatten},
      {.name = "Pad", .map = map_pad},
      {.name = "Reshape", .map = map_reshape, .fold = fold_reshape},
      {.name = "Shape", .map = never, .fold = fold_shape},
      {.name = "Size", .map = never, .fold = fold_size},
      {.name = "Slice", .map = map_slice, .fold = fold_slice},
      {.name = "SpaceToDepth", .map = map_space_to_depth},
      {.name = "Split", .map = map_split},
      {.name = "Squeeze", .map = map_squeeze, .fold = fold_squeeze},
      {.name = "Tile", .map = map_tile},
      {.name = "Transpose", .map = map_transpose},
      {.name = "Unsqueeze", .map = map_unsqueeze, .fold = fold_unsqueeze},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::shapes
