#include "lathe/compress/shrinking/parameter_cut.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/evaluate_parameter.h"

namespace lathe::compress {
namespace {

// The blocks that these places of a row consist of; empty where they cut a block in two.
std::vector<std::int64_t> whole_blocks(std::span<const std::int64_t> places, std::int64_t columns,
                                       std::int64_t block) {
  std::vector<std::int64_t> blocks;
  for (std::size_t i = 0; i < places.size();) {
    const std::int64_t number = places[i] / block;
    const std::int64_t end = std::min(columns, (number + 1) * block);
    for (std::int64_t place = number * block; place < end; ++place, ++i)
      if (i == places.size() || places[i] != place) return {};
    blocks.push_back(number);
  }
  return blocks;
}

class ParameterSlicer {
 public:
  ParameterSlicer(Graph& graph, State& state) : graph_(graph), state_(state) {}

  // Says who reads a parameter that will be cut.
  void add(NodeId reader, Value parameter) {
    readers_.insert(reader);
    collect(parameter.node);
  }

  void slice(Value parameter, std::size_t axis, std::span<const std::int64_t> places) {
    const NodeId id = parameter.node;
    const auto [done, is_new] = done_.try_emplace({id, axis}, places.begin(), places.end());
    if (!is_new) {
      if (!std::ranges::equal(done->second, places))
        fail("\"{}\" would have to be cut in two ways", graph_.name(id));
      return;
    }
    require_own(id);
    if (graph_.is(id, "state"))
      slice_state(id, axis, places);
    else if (graph_.is(id, "quantize"))
      slice_rounded(id, axis, places);
    else if (graph_.is(id, "matmul") && graph_.types(id)[0].rank() == 2)
      slice_product(id, axis, places);
    else if (graph_.op(id).is_elementwise)
      slice_operands(id, axis, places);
    else
      fail("{} cannot be cut", described(graph_, id));
  }

 private:
  void collect(NodeId id) {
    if (!parts_.insert(id).second) return;
    for (const Value& value : graph_.inputs(id))
      if (!value.is_none()) collect(value.node);
  }

  void require_own(NodeId id) const {
    for (const Use& use : graph_.uses(id)) {
      if (use.kind != Use::Kind::Operand)
        fail("\"{}\" is also what the graph gives or keeps", graph_.name(id));
      if (!readers_.contains(use.user) && !parts_.contains(use.user))
        fail("\"{}\" is also read by {}", graph_.name(id), described(graph_, use.user));
    }
  }

  void slice_state(NodeId id, std::size_t axis, std::span<const std::int64_t> places) {
    Type type = graph_.types(id)[0];
    type.shape.at(axis) = Size(static_cast<std::int64_t>(places.size()));
    graph_.set_types(id, {type});
    Tensor& value = state_.at(graph_.name(id));
    value = take_along(value, axis, places);
  }

  // An operand that is spread over the axis has nothing to lose.
  void slice_operands(NodeId id, std::size_t axis, std::span<const std::int64_t> places) {
    const Type& result = graph_.types(id)[0];
    for (const Value& value : std::vector(graph_.inputs(id))) {
      if (value.is_none()) continue;
      const Type& type = graph_.type(value);
      const std::size_t missing = result.rank() - type.rank();
      if (axis < missing || type.shape[axis - missing] != result.shape[axis]) continue;
      slice(value, axis - missing, places);
    }
  }

  void slice_product(NodeId id, std::size_t axis, std::span<const std::int64_t> places) {
    const bool is_turned = graph_.attribute(id).flag(axis == 0 ? "transpose_a" : "transpose_b");
    slice(graph_.input(id, axis), is_turned ? 1 - axis : axis, places);
  }

  void slice_rounded(NodeId id, std::size_t axis, std::span<const std::int64_t> places) {
    const Type type = graph_.types(id)[0];
    const std::int64_t rows_axis = graph_.attribute(id).integer("axis");
    const FormatFacts facts = parse_format(graph_.attribute(id).text("format"))->facts();
    slice(graph_.input(id, 0), axis, places);
    // A mask that keeps weights out of the scales is of the weight's shape.
    for (std::size_t i = 1; i < graph_.inputs(id).size(); ++i)
      if (!graph_.inputs(id)[i].is_none() && operand_role(graph_, id, i) == OperandRole::Other)
        slice(graph_.inputs(id)[i], axis, places);
    if (facts.scale_source != ScaleSource::Given || facts.granularity == Granularity::Tensor)
      return;
    // Scales lie as the matrix does: a row for each element of the rows' axis, or all axes but the
    // last.
    const bool is_row =
        rows_axis >= 0 ? axis == static_cast<std::size_t>(rows_axis) : axis + 1 < type.rank();
    std::size_t scale_axis = rows_axis >= 0 ? 0 : axis;
    std::vector<std::int64_t> scale_places(places.begin(), places.end());
    if (!is_row) {
      if (facts.granularity == Granularity::Row) return;
      const std::int64_t columns = ops::matrix_type("shrink", type, rows_axis).axis(-1).constant();
      if (columns == type.shape[axis].constant())
        scale_places = whole_blocks(places, columns, facts.block_columns);
      else
        scale_places.clear();
      if (scale_places.empty())
        fail("{} shares scales among {} neighbours that would be torn apart", described(graph_, id),
             facts.block_columns);
      scale_axis = rows_axis >= 0 ? 1 : type.rank() - 1;
    }
    for (const OperandRole role : {OperandRole::Scale, OperandRole::Zero})
      if (const std::optional<std::size_t> operand = find_operand(graph_, id, role))
        slice(graph_.input(id, *operand), scale_axis, scale_places);
  }

  Graph& graph_;
  State& state_;
  std::set<NodeId> readers_, parts_;
  std::map<std::pair<NodeId, std::size_t>, std::vector<std::int64_t>> done_;  // by node and axis
};

}  // namespace

Tensor take_along(const Tensor& tensor, std::size_t axis, std::span<const std::int64_t> places) {
  std::vector<std::int64_t> dims = tensor.dims();
  std::int64_t inner = size_of(tensor.dtype()), outer = 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (i != axis) (i < axis ? outer : inner) *= dims[i];
  const std::int64_t extent = dims.at(axis);
  dims[axis] = static_cast<std::int64_t>(places.size());
  Tensor result(tensor.dtype(), dims);
  std::byte* target = result.mutable_bytes();
  for (std::int64_t o = 0; o < outer; ++o)
    for (const std::int64_t place : places) {
      check(place >= 0 && place < extent, "places within the axis");
      std::memcpy(target, tensor.bytes() + (o * extent + place) * inner,
                  static_cast<std::size_t>(inner));
      target += inner;
    }
  return result;
}

void cut_parameters(Graph& graph, State& state, std::span<const ParameterCut> cuts) {
  std::map<Value, Tensor> expected;
  std::set<std::pair<Value, std::size_t>> seen;  // two may read the same parameter
  ParameterSlicer slicer(graph, state);
  for (const ParameterCut& cut : cuts) {
    slicer.add(cut.reader, cut.parameter);
    if (!seen.emplace(cut.parameter, cut.axis).second) continue;
    auto value = expected.find(cut.parameter);
    if (value == expected.end())
      value = expected.emplace(cut.parameter, ops::evaluate_parameter(graph, state, cut.parameter))
                  .first;
    value->second = take_along(value->second, cut.axis, cut.places);
  }
  for (const ParameterCut& cut : cuts) slicer.slice(cut.parameter, cut.axis, cut.places);
  run_pass("infer-types", graph);
  for (const auto& [parameter, value] : expected)
    if (!identical(ops::evaluate_parameter(graph, state, parameter), value))
      fail("\"{}\" would be rounded otherwise with fewer elements", graph.name(parameter));
}

}  // namespace lathe::compress
