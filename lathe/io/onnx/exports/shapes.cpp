#include <limits>
#include <numeric>

#include "lathe/io/onnx/onnx_writer.h"
#include "lathe/ops/elements.h"

// Ops that move elements, take them by index, make them of little, or reduce axes.
namespace lathe::io::onnx::exports_shapes {
namespace {

void write_reshape(ExportCall& call) {
  const Shape& from = call.type(0).shape;
  const Shape& to = call.result_type().shape;
  // An axis that stays is 0, one that is left is -1: most shapes need no more to be said.
  std::vector<std::int64_t> plain;
  int open = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_constant() && to[i].constant() > 0) {
      plain.push_back(to[i].constant());
    } else if (i < from.size() && to[i] == from[i]) {
      plain.push_back(0);
    } else {
      plain.push_back(-1);
      ++open;
    }
  }
  call.give_node("Reshape", {call.input(0), open <= 1 ? call.integers(plain) : call.shape(to)});
}

void write_broadcast(ExportCall& call) {
  call.give_node("Expand", {call.input(0), call.shape(call.result_type().shape)});
}

void write_transpose(ExportCall& call) {
  std::vector<std::int64_t> axes = call.attributes().integers("axes");
  for (std::int64_t& axis : axes)
    if (axis < 0) axis += static_cast<std::int64_t>(axes.size());
  call.give_node("Transpose", {call.input(0)}, {{"perm", axes}});
}

void write_concat(ExportCall& call) {
  call.give_node("Concat", call.inputs(), {{"axis", call.attributes().integer("axis")}});
}

void write_split(ExportCall& call) {
  call.give_node("Split", {call.input(0), call.integers(call.attributes().integers("sizes"))},
                 {{"axis", call.attributes().integer("axis")}});
}

void write_slice(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  call.give_node("Slice", {call.input(0), call.integers({attributes.integer("begin")}),
                           call.integers({attributes.integer("end")}),
                           call.integers({attributes.integer("axis")})});
}

void write_crop(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  const std::size_t rank = call.type(0).rank();
  std::vector<std::int64_t> steps = attributes.integers("steps");
  if (steps.empty()) steps.assign(rank, 1);
  std::vector<std::int64_t> axes(rank), ends(rank);
  std::iota(axes.begin(), axes.end(), 0);
  const std::vector<std::int64_t>& begins = attributes.integers("begins");
  bool is_known = true;
  for (std::size_t i = 0; i < rank; ++i) {
    const Size& count = call.result_type().shape[i];
    is_known = is_known && count.is_constant();
    if (!count.is_constant()) continue;
    const std::int64_t end = begins[i] + count.constant() * steps[i];
    // An end that passes zero means the end of the axis, on either side.
    const bool passes = begins[i] < 0 ? (steps[i] > 0 && end >= 0) : (steps[i] < 0 && end < 0);
    ends[i] = passes ? (steps[i] > 0 ? std::numeric_limits<std::int64_t>::max()
                                     : std::numeric_limits<std::int64_t>::min())
                     : end;
  }
  std::string end = call.integers(ends);
  if (!is_known) {
    for (std::size_t i = 0; i < rank; ++i)
      if (begins[i] < 0 || steps[i] != 1)
        fail("a box of {} from the end is not written in ONNX", to_text(call.result_type()));
    end = call.add("Add", {call.integers(begins), call.shape(call.result_type().shape)});
  }
  call.give_node("Slice", {call.input(0), call.integers(begins), end, call.integers(axes),
                           call.integers(steps)});
}

void write_select(ExportCall& call) {
  const std::string index =
      call.constant(Tensor::from<std::int64_t>({}, {call.attributes().integer("index")}), "index");
  call.give_node("Gather", {call.input(0), index}, {{"axis", call.attributes().integer("axis")}});
}

void write_gather(ExportCall& call) {
  call.give_node("Gather", call.inputs(), {{"axis", call.attributes().integer("axis")}});
}

void write_embedding(ExportCall& call) {
  call.give_node("Gather", {call.input(1), call.input(0)}, {{"axis", std::int64_t{0}}});
}

void write_gather_elements(ExportCall& call) {
  call.give_node("GatherElements", call.inputs(), {{"axis", call.attributes().integer("axis")}});
}

void write_gather_parts(ExportCall& call) {
  call.give_node("GatherND", call.inputs(),
                 {{"batch_dims", call.attributes().integer("batch_axes")}});
}

void write_scatter_elements(ExportCall& call) {
  call.give_node("ScatterElements", call.inputs(),
                 {{"axis", call.attributes().integer("axis")},
                  {"reduction", call.attributes().text("reduction")}});
}

void write_scatter_parts(ExportCall& call) {
  call.give_node("ScatterND", call.inputs(), {{"reduction", call.attributes().text("reduction")}});
}

void write_pad(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  call.give_node("Pad",
                 {call.input(0), call.integers(attributes.integers("pads")),
                  call.number(attributes.real("value"), call.type(0).dtype)},
                 {{"mode", attributes.text("mode")}});
}

void write_cumulative_sum(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  call.give_node(
      "CumSum",
      {call.input(0), call.number(static_cast<double>(attributes.integer("axis")), DType::I64)},
      {{"exclusive", std::int64_t{attributes.flag("exclusive")}},
       {"reverse", std::int64_t{attributes.flag("reverse")}}});
}

void write_top_k(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  call.give_node("TopK", {call.input(0), call.integers({attributes.integer("k")})},
                 {{"axis", attributes.integer("axis")},
                  {"largest", std::int64_t{attributes.flag("largest")}}});
}

void write_argmax(ExportCall& call) {
  const std::string place = call.add("ArgMax", {call.input(0)},
                                     {{"axis", std::int64_t{-1}}, {"keepdims", std::int64_t{0}}});
  call.give_node("Cast", {place}, {{"to", onnx_code(call.result_type().dtype)}});
}

void write_reduction(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  const std::string& op = call.graph().op(call.node()).name;
  std::map<std::string, AttributeValue, std::less<>> written{
      {"keepdims", std::int64_t{attributes.flag("keep")}}};
  const std::vector<std::int64_t>& axes = attributes.integers("axes");
  // Sums have their axes as an operand since opset 13, the others since 18.
  if (op == "sum") {
    std::vector<std::string> inputs{call.input(0)};
    if (!axes.empty()) inputs.push_back(call.integers(axes));
    call.give_node("ReduceSum", inputs, written);
    return;
  }
  if (!axes.empty()) written["axes"] = axes;
  call.give_node(op == "mean"  ? "ReduceMean"
                 : op == "max" ? "ReduceMax"
                               : "ReduceProd",
                 {call.input(0)}, written);
}

// One number everywhere, or all of them.
void write_constant(ExportCall& call) {
  const Type& type = call.result_type();
  const std::vector<double> values = call.attributes().reals("values");
  const bool is_small = values.size() > 1 || type.num_elements() == Size(1);
  if (!is_small) {
    call.give_node("Expand", {call.number(values[0], type.dtype), call.shape(type.shape)});
    return;
  }
  std::vector<std::int64_t> dims;
  for (const Size& size : type.shape) dims.push_back(size.constant());
  Tensor tensor(type.dtype, dims);
  ops::write_elements(tensor, values);
  call.give(call.constant(std::move(tensor)));
}

void write_full_like(ExportCall& call) {
  const Type& type = call.result_type();
  const std::string number = call.number(call.attributes().real("value"), type.dtype);
  call.give_node("Expand", {number, call.add("Shape", {call.input(0)})});
}

// first, first + step, .. up to a size that an input shows.
std::string counted(ExportCall& call, const Size& size, double first, double step, DType dtype) {
  const std::string count =
      call.add("Squeeze", {call.shape({size}), call.integers({0})}, {}, "count");
  std::string range = call.add(
      "Range", {call.number(0, DType::I64), count, call.number(1, DType::I64)}, {}, "range");
  range = call.cast(range, DType::I64, dtype);
  if (step != 1) range = call.add("Mul", {range, call.number(step, dtype)});
  if (first != 0) range = call.add("Add", {range, call.number(first, dtype)});
  return range;
}

void write_range(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  call.give(counted(call, call.result_type().shape[0], attributes.real("first"),
                    attributes.real("step"), call.result_type().dtype));
}

void write_positions(ExportCall& call) {
  const Type& type = call.result_type();
  const std::string range = counted(
      call, type.shape[1], static_cast<double>(call.attributes().integer("first")), 1, type.dtype);
  call.give_node("Expand", {range, call.add("Shape", {call.input(0)})});
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxWriter writers[] = {
      {.name = "argmax", .write = write_argmax},
      {.name = "broadcast_to", .write = write_broadcast},
      {.name = "concat", .write = write_concat},
      {.name = "constant", .write = write_constant},
      {.name = "crop", .write = write_crop},
      {.name = "cumulative_sum", .write = write_cumulative_sum},
      {.name = "embedding", .write = write_embedding, .takes_wide = true},
      {.name = "full_like", .write = write_full_like, .takes_wide = true},
      {.name = "gather", .write = write_gather},
      {.name = "gather_elements", .write = write_gather_elements},
      {.name = "gather_parts", .write = write_gather_parts},
      {.name = "max", .write = write_reduction},
      {.name = "mean", .write = write_reduction},
      {.name = "pad", .write = write_pad},
      {.name = "positions", .write = write_positions, .takes_wide = true},
      {.name = "product", .write = write_reduction},
      {.name = "range", .write = write_range},
      {.name = "reshape", .write = write_reshape},
      {.name = "scatter_elements", .write = write_scatter_elements},
      {.name = "scatter_parts", .write = write_scatter_parts},
      {.name = "select", .write = write_select},
      {.name = "slice", .write = write_slice},
      {.name = "split", .write = write_split},
      {.name = "sum", .write = write_reduction},
      {.name = "top_k", .write = write_top_k},
      {.name = "transpose", .write = write_transpose},
  };
  for (const OnnxWriter& writer : writers) result.emplace_back(writer);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::exports_shapes
