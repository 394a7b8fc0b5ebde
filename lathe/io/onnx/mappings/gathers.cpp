#include "lathe/io/onnx/onnx_op.h"
#include "lathe/io/onnx/size_rules.h"

// Ops that take elements by indices, or put them there.
namespace lathe::io::onnx::gathers {
namespace {

// Rows of a table are an embedding, one index of an axis is a selection; both are faster than the
// general op and can be packed.
void map_gather(OnnxCall& call) {
  const Type x = call.type(0);
  const std::size_t axis = axis_at(call, call.integer("axis", 0), x.rank());
  if (const Tensor* index = call.constant(1); index != nullptr && index->rank() == 0) {
    call.give(call.add("select", {call.value(0)},
                       {{"axis", static_cast<std::int64_t>(axis)},
                        {"index", static_cast<std::int64_t>(index->at(0))}}));
    return;
  }
  // Ids that are fed are from 0 up; those of the file may count from the end.
  const bool is_table = call.constant(0) != nullptr && call.constant(1) == nullptr;
  if (axis == 0 && x.rank() == 2 && is_table && is_floating(x.dtype)) {
    call.give(call.add("embedding", {call.value(1), call.value(0)}));
    return;
  }
  call.give(call.add("gather", {call.value(0), call.value(1)},
                     {{"axis", static_cast<std::int64_t>(axis)}}));
}

void map_gather_elements(OnnxCall& call) {
  call.give(call.add("gather_elements", {call.value(0), call.value(1)},
                     {{"axis", call.integer("axis", 0)}}));
}

void map_gather_nd(OnnxCall& call) {
  call.give(call.add("gather_parts", {call.value(0), call.value(1)},
                     {{"batch_axes", call.integer("batch_dims", 0)}}));
}

void map_scatter_elements(OnnxCall& call) {
  call.give(
      call.add("scatter_elements", {call.value(0), call.value(1), call.value(2)},
               {{"axis", call.integer("axis", 0)}, {"reduction", call.text("reduction", "none")}}));
}

void map_scatter_nd(OnnxCall& call) {
  call.give(call.add("scatter_parts", {call.value(0), call.value(1), call.value(2)},
                     {{"reduction", call.text("reduction", "none")}}));
}

void map_top_k(OnnxCall& call) {
  const std::int64_t k = call.has_attribute("k")
                             ? call.integer("k", 1)
                             : static_cast<std::int64_t>(call.need_number(1, "k"));
  const Value result = call.add(
      "top_k", {call.value(0)},
      {{"axis", call.integer("axis", -1)}, {"k", k}, {"largest", call.integer("largest", 1) != 0}});
  call.give(result, 0);
  call.give(Value{result.node, 1}, 1);
}

// The first elements of each sequence backwards: place t takes place length - 1 - t.
void map_reverse_sequence(OnnxCall& call) {
  const Type x = call.type(0);
  const std::size_t time = axis_at(call, call.integer("time_axis", 0), x.rank());
  const std::size_t batch = axis_at(call, call.integer("batch_axis", 1), x.rank());
  if (time == batch) call.refuse("the axes of time and of sequences are the same");
  Shape along_time(x.rank(), Size(1)), along_batch(x.rank(), Size(1));
  along_time[time] = x.shape[time];
  along_batch[batch] = x.shape[batch];
  const Value range =
      call.add("range", {}, {}, {{.dtype = DType::I64, .shape = {x.shape[time]}}}, "range");
  const Value t = call.reshape(range, along_time, "time");
  const Value lengths = call.reshape(call.cast(call.value(1), DType::I64), along_batch, "lengths");
  const Value last = call.add("sub", {lengths, call.number(1, DType::I64)}, {}, {}, "last");
  const Value places = call.add("where",
                                {call.add("less", {t, lengths}, {}, {}, "is_inside"),
                                 call.add("sub", {last, t}, {}, {}, "reversed"), t},
                                {}, {}, "places");
  call.give(call.add("gather_elements", {call.value(0), call.broadcast(places, x.shape)},
                     {{"axis", static_cast<std::int64_t>(time)}}));
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxOp ops[] = {
      {.name = "Gather", .map = map_gather, .fold = fold_gather},
      {.name = "GatherElements", .map = map_gather_elements},
      {.name = "GatherND", .map = map_gather_nd, .fold = fold_gather_nd},
      {.name = "ReverseSequence", .map = map_reverse_sequence},
      {.name = "Scatter", .map = map_scatter_elements},
      {.name = "ScatterElements", .map = map_scatter_elements},
      {.name = "ScatterND", .map = map_scatter_nd},
      {.name = "TopK", .map = map_top_k},
  };
  for (const OnnxOp& op : ops) result.emplace_back(op);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::gathers
