#include "lathe/hardware/mapping/graph_mapper.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/schedule.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::hardware {

GraphMapper::GraphMapper(const Graph& graph, const State& state, MappingOptions options)
    : netlist(options.name), graph_(graph), state_(state), options_(std::move(options)) {
  options_.symbols["B"] = 1;
}

void GraphMapper::run() {
  for (const auto& [layer, lanes] : options_.parallelism) {
    std::vector<std::string> known;
    for (const NodeId node : graph_.topological_order()) {
      const auto* mapping = Registry<BlockMapping>::instance().find(graph_.op(node).name);
      if (mapping != nullptr && mapping->sizes) known.push_back(graph_.name(node));
    }
    if (std::find(known.begin(), known.end(), layer) == known.end())
      throw unknown_name("layer", layer, known).at("parallelism");
  }
  for (const ExternalLayer& layer : options_.external) {
    const std::vector<NodeId> nodes = graph_.topological_order();
    const bool is_there =
        std::ranges::any_of(nodes, [&](NodeId node) { return external_of(node) == &layer; });
    if (!is_there) fail("layer \"{}\" of the rules is none of the model's", layer.layer);
  }
  for (const NodeId node : graph_.topological_order()) map(node);
  if (places_.empty()) add_outputs();
  if (!places_.empty()) fail("no hardware for {}", fmt::join(places_, "; "));
}

void GraphMapper::map(NodeId node) {
  if (graph_.op(node).is_source || values_.contains({node, 0})) return;
  const bool is_behind_refused = std::ranges::any_of(graph_.inputs(node), [&](const Value& value) {
    return !value.is_none() && refused_.contains(value.node);
  });
  const auto* mapping = Registry<BlockMapping>::instance().find(graph_.op(node).name);
  const ExternalLayer* external = external_of(node);
  const auto refuse = [&](const std::string& reason) {
    refused_.insert(node);
    places_.push_back(described(graph_, node) + (reason.empty() ? "" : ": " + reason));
  };
  if (is_behind_refused) {
    if (external == nullptr && mapping == nullptr) refuse("");
    refused_.insert(node);
    return;
  }
  const bool is_fed = std::ranges::any_of(graph_.inputs(node), [&](const Value& value) {
    return !value.is_none() && values_.contains(value);
  });
  // Ids, positions and masks are the host's; who needs one as a stream says so.
  if (!is_fed && mapping == nullptr) return;
  if (external == nullptr && mapping == nullptr) return refuse("");
  try {
    if (external != nullptr)
      map_external(node, *external);
    else
      mapping->map(*this, node);
  } catch (const UserError& error) {
    refuse(error.message());
  }
}

// A layer is known by its whole name or, where no node has that, by the name it has in the model.
// What rounds its operands belongs to the blocks in front, and the host scales what leaves.
const ExternalLayer* GraphMapper::external_of(NodeId node) const {
  const std::string& name = graph_.name(node);
  for (const char* other : {"requant", "to_integer", "from_integer"})
    if (graph_.is(node, other)) return nullptr;
  if (graph_.op(node).is_source) return nullptr;
  for (const ExternalLayer& layer : options_.external) {
    if (layer.layer == name) return &layer;
    if (layer.layer == name.substr(0, name.find('/')) && !graph_.find(layer.layer)) return &layer;
  }
  return nullptr;
}

void GraphMapper::map_external(NodeId node, const ExternalLayer& layer) {
  if (!netlist.own_blocks().contains(layer.module)) netlist.define(external_block(layer));
  MappedValue value = operand(node, 0);
  value.stream = add(node, {.name = "", .block = layer.module, .inputs = {value.stream}}, node);
  set(node, std::move(value));
}

void GraphMapper::add_outputs() {
  for (const auto& [name, value] : graph_.outputs()) {
    const MappedValue* mapped = find(value);
    if (mapped == nullptr) {
      places_.push_back(fmt::format("output \"{}\": it is no stream", name));
      continue;
    }
    DesignPort port{
        .name = name,
        .node = graph_.name(graph_.is(value.node, "from_integer") ? graph_.input(value.node, 0).node
                                                                  : value.node),
        .dims = mapped->dims,
        .order = mapped->order};
    const Element& element = type(*mapped).element;
    port.range = {.width = element.width, .is_signed = element.is_signed};
    port.scale = graph_.is(value.node, "from_integer")
                     ? graph_.attribute(value.node).reals(ops::kScale)
                     : std::vector<double>{1.0};
    netlist.add_output(mapped->stream);
    outputs.push_back(std::move(port));
  }
}

std::vector<std::int64_t> GraphMapper::example_dims(Value value) const {
  std::vector<std::int64_t> dims = graph_.type(value).dims(options_.symbols);
  if (!dims.empty() && graph_.type(value).shape.front().depends_on("B")) dims.erase(dims.begin());
  return dims;
}

Values GraphMapper::integers(Value value) const {
  if (value.is_none() || !is_constant(value))
    fail("{} is computed, and expected to be a parameter", graph_.name(value));
  const auto found = state_.find(graph_.name(value.node));
  check(found != state_.end(), "a value for every state");
  return ops::read_integers(found->second);
}

const MappedValue* GraphMapper::find(Value value) const {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : &found->second;
}

const MappedValue& GraphMapper::operand(NodeId node, std::size_t index) const {
  const MappedValue* value = find(graph_.input(node, index));
  if (value == nullptr)
    fail("operand {} is a parameter, and expected to be computed",
         graph_.op(node).operands.at(index).name);
  return *value;
}

StreamId GraphMapper::read(NodeId node, std::size_t index, int lanes) {
  const StreamId stream = operand(node, index).stream;
  const StreamId result = convert_lanes(netlist, stream, lanes);
  claim(node);
  return result;
}

Lanes GraphMapper::lanes(NodeId node, std::int64_t in, std::int64_t out) const {
  const auto found = options_.parallelism.find(graph_.name(node));
  if (found == options_.parallelism.end()) return {};
  const Lanes lanes = found->second;
  if (lanes.in > in || lanes.out > out)
    fail("{}x{} lanes for {} inputs and {} outputs", lanes.in, lanes.out, in, out);
  return lanes;
}

int GraphMapper::wanted_lanes(Value value) const {
  for (const NodeId user : graph_.users(value.node)) {
    const auto* mapping = Registry<BlockMapping>::instance().find(graph_.op(user).name);
    if (mapping == nullptr) continue;
    if (!mapping->sizes) return wanted_lanes({user, 0});
    const auto found = options_.parallelism.find(graph_.name(user));
    return found == options_.parallelism.end() ? 1 : found->second.in;
  }
  return 1;
}

// "layers.0.activation/quantized" is "layers.0.activation" where nobody else is.
std::string GraphMapper::instance_name(NodeId node, const std::string& suffix) const {
  const std::string& whole = graph_.name(node);
  const std::string brief = whole.substr(0, whole.find('/')) + suffix;
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(netlist.streams(),
                               [&](const auto& stream) { return stream.name == name; });
  };
  return is_taken(brief) ? whole + suffix : brief;
}

StreamId GraphMapper::add(NodeId node, Instance instance, NodeId result) {
  instance.name = instance_name(node, instance.name);
  const StreamId stream = netlist.add_single(std::move(instance));
  claim(node);
  const AttributeReader attributes = graph_.attribute(result);
  const Attributes& given = graph_.attributes(result);
  if (given.contains(ops::kWidth))
    netlist.set_meaning(stream,
                        meaning_of(ops::integer_range(attributes), attributes.reals(ops::kScale)));
  else if (const MappedValue* from = find(graph_.input(result, 0)))
    netlist.set_meaning(stream, type(*from).element.meaning);
  return stream;
}

StreamId GraphMapper::length_of(Value mask) {
  if (const auto found = lengths_.find(mask); found != lengths_.end()) return found->second;
  const std::vector<std::int64_t> dims = example_dims(mask);
  if (dims.size() != 1)
    fail("mask {} has {} axes, and expected one", graph_.name(mask), dims.size());
  DesignPort port{.name = graph_.name(mask),
                  .node = graph_.name(mask),
                  .dims = dims,
                  .range = {.width = signed_width(0, dims[0]) - 1, .is_signed = false},
                  .scale = {1.0},
                  .is_length = true};
  const StreamId stream = netlist.add_input(
      new_name(mask.node), {.element = {.width = port.range.width, .is_signed = false}});
  inputs.push_back(std::move(port));
  return lengths_[mask] = stream;
}

std::optional<NodeId> GraphMapper::requant_behind(NodeId node) const {
  const std::vector<Use>& uses = graph_.uses(node);
  if (uses.size() != 1 || uses[0].kind != Use::Kind::Operand || uses[0].operand != 0) return {};
  if (!graph_.is(uses[0].user, "requant")) return {};
  return uses[0].user;
}

void GraphMapper::add_requantization(Instance& instance, NodeId node) const {
  const AttributeReader attributes = graph_.attribute(node);
  const numerics::IntegerRange range = ops::integer_range(attributes);
  instance.parameters["width"] = range.width;
  instance.parameters["signed"] = range.is_signed ? 1 : 0;
  instance.parameters["symmetric"] = range.is_symmetric ? 1 : 0;
  if (!graph_.is(node, "requant")) return;
  instance.parameters["shift"] = ops::shift_attribute(attributes, "shift");
  instance.parameters["mode"] = static_cast<std::int64_t>(ops::integer_rounding(attributes));
  if (const Value multipliers = graph_.input(node, 1); !multipliers.is_none())
    instance.tables["multiplier"] = integers(multipliers);
  else
    instance.parameters["multiplier"] = ops::multiplier_attribute(attributes, "multiplier");
}

std::vector<GraphMapper::FoldedLayer> GraphMapper::folded_layers() const {
  std::vector<FoldedLayer> result;
  for (const NodeId node : graph_.topological_order()) {
    const auto* mapping = Registry<BlockMapping>::instance().find(graph_.op(node).name);
    if (mapping == nullptr || !mapping->sizes) continue;
    const auto [in, out] = mapping->sizes(*this, node);
    result.push_back({.node = node, .in = in, .out = out});
  }
  return result;
}

std::optional<GraphMapper::LayerCost> GraphMapper::cost_of(NodeId layer, Lanes lanes) const {
  MappingOptions options = options_;
  options.parallelism = {{graph_.name(layer), lanes}};
  GraphMapper alone(graph_, state_, std::move(options));
  // What comes from elsewhere enters in the lanes in which it is wanted: the converter in front is
  // counted with whoever needs it in another width.
  const auto add_inputs = [&](NodeId node, int in) {
    for (const Value& value : graph_.inputs(node)) {
      const MappedValue* mapped = value.is_none() ? nullptr : find(value);
      if (mapped == nullptr || alone.values_.contains(value)) continue;
      Stream type = netlist.type(mapped->stream);
      type.lanes = in;
      MappedValue entered = *mapped;
      entered.stream = alone.netlist.add_input(graph_.name(value), type);
      alone.values_[value] = std::move(entered);
    }
  };
  add_inputs(layer, lanes.in);
  alone.map(layer);
  if (!alone.places_.empty()) return {};
  for (const NodeId node : graph_.topological_order()) {
    const auto* mapping = Registry<BlockMapping>::instance().find(graph_.op(node).name);
    if (mapping == nullptr || mapping->sizes || alone.values_.contains({node, 0})) continue;
    if (graph_.is(node, "from_integer") || graph_.inputs(node).empty()) continue;
    const MappedValue* from = alone.find(graph_.input(node, 0));
    const bool is_behind =
        from != nullptr &&
        std::ranges::find(alone.netlist.inputs(), from->stream) == alone.netlist.inputs().end();
    if (!is_behind) continue;
    add_inputs(node, alone.type(*from).lanes);
    alone.map(node);
  }
  check(alone.places_.empty(), "a layer that was mapped before to be mapped again");
  return LayerCost{.cycles = bottleneck_cycles(alone.netlist),
                   .resources = hardware::resources(alone.netlist)};
}

std::string meaning_of(const numerics::IntegerRange& range, const std::vector<double>& scale) {
  int exponent = 0;
  const bool is_power = scale.size() == 1 && std::frexp(scale[0], &exponent) == 0.5;
  if (is_power && range.is_signed && !range.is_symmetric)
    return fmt::format("fixed:{},{}", range.width, 1 - exponent);
  if (scale.size() == 1) return fmt::format("{} bits of {:.6g}", range.width, scale[0]);
  return fmt::format("{} bits, a scale for each channel", range.width);
}

}  // namespace lathe::hardware
