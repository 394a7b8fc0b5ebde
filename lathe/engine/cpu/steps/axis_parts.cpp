#include <algorithm>
#include <cstring>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// Ops that copy runs of indices of one axis between a whole array and parts of it. slice, select,
// split and concat_gradient take parts out; concat, slice_gradient and select_gradient put them
// together, with zeros where there is no part.
//
// Along the last axis each row stands for itself, so that the copy joins the stage of its
// neighbours: a joint projection of queries, keys and values is split while it is in cache.

enum class Place {
  Consecutive,  ///< parts follow one another
  Begin,        ///< the only part begins at attribute `begin`
  Index,        ///< the only part is the attribute `index`, and its axis is gone
};

struct Movement {
  bool is_putting;
  Place place;
};

// The indices of the axis that a part holds.
struct Run {
  std::int64_t begin = 0, size = 0;
};

struct Layout {
  ops::AxisSplit whole;
  std::vector<Run> parts;
  bool covers_all() const {
    std::int64_t covered = 0;
    for (const Run& part : parts) covered += part.size;
    return covered == whole.size;
  }
};

const Type& whole_type(const Graph& graph, NodeId id, const Movement& movement) {
  return movement.is_putting ? graph.types(id)[0] : graph.type(graph.input(id, 0));
}

const Type& part_type(const Graph& graph, NodeId id, const Movement& movement, std::size_t part) {
  return movement.is_putting ? graph.type(graph.input(id, part)) : graph.types(id)[part];
}

std::size_t num_parts(const Graph& graph, NodeId id, const Movement& movement) {
  return movement.is_putting ? graph.inputs(id).size() : graph.types(id).size();
}

std::size_t axis_of(const Graph& graph, NodeId id, const Movement& movement) {
  return ops::axis_position(graph.attribute(id).integer("axis"),
                            whole_type(graph, id, movement).rank());
}

// Where the parts of an axis of `size` lie.
std::vector<Run> find_parts(const Graph& graph, NodeId id, const Movement& movement,
                            std::int64_t size, const SymbolValues& symbols) {
  const std::size_t axis = axis_of(graph, id, movement);
  std::vector<Run> parts;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < num_parts(graph, id, movement); ++i) {
    Run run{next, 1};
    if (movement.place != Place::Index)
      run.size = part_type(graph, id, movement, i).shape[axis].evaluate(symbols);
    if (movement.place != Place::Consecutive) {
      run.begin = graph.attribute(id).integer(movement.place == Place::Begin ? "begin" : "index");
      if (run.begin < 0) run.begin += size;
    }
    if (run.begin < 0 || run.size < 0 || run.begin + run.size > size)
      fail("indices {} to {} are outside axis {}, which has size {}", run.begin,
           run.begin + run.size - 1, axis, size);
    parts.push_back(run);
    next = run.begin + run.size;
  }
  return parts;
}

// Copies `rows` outer rows of every part; an index of the axis is `inner` bytes.
void copy_parts(const Layout& layout, bool is_putting, std::int64_t rows, std::int64_t inner,
                std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) {
  const std::int64_t row_bytes = layout.whole.size * inner;
  if (is_putting && !layout.covers_all())
    std::memset(outputs[0], 0, static_cast<std::size_t>(rows * row_bytes));
  for (std::size_t i = 0; i < layout.parts.size(); ++i) {
    const Run& run = layout.parts[i];
    const std::int64_t bytes = run.size * inner;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t in_whole = row * row_bytes + run.begin * inner, in_part = row * bytes;
      if (is_putting)
        std::memcpy(outputs[0] + in_whole, inputs[i] + in_part, static_cast<std::size_t>(bytes));
      else
        std::memcpy(outputs[i] + in_part, inputs[0] + in_whole, static_cast<std::size_t>(bytes));
    }
  }
}

class AxisRowsStep final : public Step {
 public:
  AxisRowsStep(RowSpace space, Layout layout, bool is_putting, std::int64_t element_bytes)
      : space_(std::move(space)),
        layout_(std::move(layout)),
        is_putting_(is_putting),
        element_bytes_(element_bytes) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    copy_parts(layout_, is_putting_, call.rows, element_bytes_, call.inputs, call.outputs);
  }

 private:
  RowSpace space_;
  Layout layout_;
  bool is_putting_;
  std::int64_t element_bytes_;
};

class AxisPartsStep final : public Step {
 public:
  explicit AxisPartsStep(Movement movement) : movement_(movement) {}
  void run_whole(const WholeCall& call) const override {
    const Type& type = whole_type(call.graph, call.node, movement_);
    Layout layout{
        ops::split_around(type.dims(call.symbols), axis_of(call.graph, call.node, movement_)), {}};
    layout.parts = find_parts(call.graph, call.node, movement_, layout.whole.size, call.symbols);
    const std::int64_t inner = layout.whole.inner * size_of(type.dtype);
    constexpr std::int64_t kTaskBytes = std::int64_t{64} << 10;
    const std::int64_t grain = std::max<std::int64_t>(
        1, kTaskBytes / std::max<std::int64_t>(1, layout.whole.size * inner));
    const std::int64_t outer = layout.whole.outer;
    call.parallel((outer + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t first = task * grain;
      std::vector<const std::byte*> inputs(call.inputs.begin(), call.inputs.end());
      std::vector<std::byte*> outputs(call.outputs.begin(), call.outputs.end());
      const std::int64_t skipped = first * layout.whole.size * inner;
      for (std::size_t i = 0; i < layout.parts.size(); ++i) {
        const std::int64_t skipped_part = first * layout.parts[i].size * inner;
        if (movement_.is_putting)
          inputs[i] += skipped_part;
        else
          outputs[i] += skipped_part;
      }
      if (movement_.is_putting)
        outputs[0] += skipped;
      else
        inputs[0] += skipped;
      copy_parts(layout, movement_.is_putting, std::min(grain, outer - first), inner, inputs,
                 outputs);
    });
  }

 private:
  Movement movement_;
};

std::unique_ptr<Step> make_axis_parts(const Graph& graph, NodeId id, const Movement& movement) {
  const Type& whole = whole_type(graph, id, movement);
  const std::size_t axis = axis_of(graph, id, movement);
  bool is_constant = axis + 1 == whole.rank() && whole.shape.back().is_constant();
  for (std::size_t i = 0; is_constant && i < num_parts(graph, id, movement); ++i)
    is_constant = movement.place == Place::Index ||
                  part_type(graph, id, movement, i).shape.back().is_constant();
  if (!is_constant) return std::make_unique<AxisPartsStep>(movement);
  Layout layout;
  layout.whole.size = whole.shape.back().constant();
  layout.parts = find_parts(graph, id, movement, layout.whole.size, {});
  RowSpace space{Size(1), {}, {}};
  for (std::size_t i = 0; i + 1 < whole.rank(); ++i) space.rows *= whole.shape[i];
  std::vector<std::int64_t> parts;
  for (const Run& run : layout.parts) parts.push_back(run.size);
  // A width of 0 would mean an operand read whole or a sum.
  if (layout.whole.size == 0 || std::find(parts.begin(), parts.end(), 0) != parts.end())
    return std::make_unique<AxisPartsStep>(movement);
  space.input_widths = movement.is_putting ? parts : std::vector{layout.whole.size};
  space.output_widths = movement.is_putting ? std::vector{layout.whole.size} : parts;
  // concat_gradient also names the operands whose sizes it takes, row by row.
  if (space.input_widths.size() < graph.inputs(id).size())
    space.input_widths.insert(space.input_widths.end(), parts.begin(), parts.end());
  return std::make_unique<AxisRowsStep>(std::move(space), std::move(layout), movement.is_putting,
                                        size_of(whole.dtype));
}

CpuKernel axis_kernel(std::string op, Movement movement) {
  return {std::move(op), [movement](const Graph& graph, NodeId id) {
            return make_axis_parts(graph, id, movement);
          }};
}

const Register slice{axis_kernel("slice", {false, Place::Begin})};
const Register slice_gradient{axis_kernel("slice_gradient", {true, Place::Begin})};
const Register select{axis_kernel("select", {false, Place::Index})};
const Register select_gradient{axis_kernel("select_gradient", {true, Place::Index})};
const Register split{axis_kernel("split", {false, Place::Consecutive})};
const Register concat{axis_kernel("concat", {true, Place::Consecutive})};
const Register concat_gradient{axis_kernel("concat_gradient", {false, Place::Consecutive})};

}  // namespace
}  // namespace lathe::engine
