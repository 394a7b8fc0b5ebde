#include "lathe/compress/integer/integer_lowering.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/role.h"
#include "lathe/numerics/integer/scale_multiplier.h"
#include "lathe/ops/evaluate_parameter.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::compress {
namespace {

using numerics::Integer128;
using numerics::IntegerRange;

IntegerRange narrowest_range(const std::vector<std::int64_t>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  return {.width = std::max(2, numerics::signed_bits(low, high))};
}

}  // namespace

IntegerLowering::IntegerLowering(const Graph& graph, const State& state)
    : graph_(graph), state_(state), parameters_(graph) {
  for (const std::string& symbol : graph.symbols()) integer_.declare_symbol(symbol);
}

void IntegerLowering::run() {
  for (const NodeId id : graph_.topological_order()) lower(id);
  add_outputs();
  if (places_.empty()) return;
  throw UserError(fmt::format("no integers for {}", fmt::join(places_, "; ")),
                  "lathe quantize --profile hardware puts quantizers everywhere");
}

void IntegerLowering::lower(NodeId node) {
  if (graph_.is(node, "state") || is_parameter({node, 0})) return;  // their readers' matter
  const bool is_read_as_float = std::ranges::any_of(graph_.inputs(node), [&](const Value& value) {
    return !value.is_none() && is_floating(graph_.type(value).dtype);
  });
  const bool gives_float = std::ranges::any_of(
      graph_.types(node), [](const Type& type) { return is_floating(type.dtype); });
  if (!is_read_as_float && (!gives_float || graph_.is(node, "input"))) return copy(node);
  // What a node in front of a quantizer could not do without it is done already.
  if (find({node, 0}) != nullptr) return;
  if (const IntegerRule* rule = Registry<IntegerRule>::instance().find(graph_.op(node).name))
    return rule->lower(*this, node);
  // Named even behind another place that stays float: quantizers there would not help it.
  refuse(node, "there is no integer form of it");
}

void IntegerLowering::add_outputs() {
  for (const auto& [name, value] : graph_.outputs()) {
    if (const auto plain = plain_.find(value); plain != plain_.end()) {
      integer_.set_output(name, plain->second);
      continue;
    }
    const IntegerValue* const integer = find(value);
    if (integer == nullptr) {
      if (!float_.contains(value.node)) refuse(value.node, "the output is not quantized");
      continue;
    }
    if (integer->scales.size() > 1 && integer->channel_axis != -1) {
      refuse(value.node, "the output has a scale for each channel, and is not quantized");
      continue;
    }
    integer_.set_output(name, add({.name = graph_.name(value) + "/float",
                                   .op = "from_integer",
                                   .inputs = {integer->value},
                                   .attributes = {{ops::kScale, integer->scales}}}));
  }
}

Tensor IntegerLowering::parameter(Value value) const {
  return ops::evaluate_parameter(graph_, state_, value);
}

std::optional<NodeId> IntegerLowering::parameter_quantizer(Value value) const {
  if (const auto masked = masked_operand(graph_, value.node))
    value = graph_.input(value.node, *masked);
  if (!graph_.is(value.node, "quantize")) return std::nullopt;
  return value.node;
}

std::string IntegerLowering::parameter_name(Value value) const {
  const std::vector<NodeId> sources = parameters_.sources(value);
  return sources.size() == 1 ? graph_.name(sources.front()) : graph_.name(value);
}

std::optional<IntegerParameter> IntegerLowering::integers_of(NodeId node, Value parameter_value,
                                                             std::int64_t rows, bool one_scale) {
  const std::optional<NodeId> quantizer = parameter_quantizer(parameter_value);
  if (!quantizer) {
    refuse(node, fmt::format("{} is not quantized", parameter_name(parameter_value)));
    return std::nullopt;
  }
  const Tensor floats = parameter(parameter_value);
  const std::span<const float> values = floats.data<float>();
  auto result = parameter_integers(graph_, state_, *quantizer, {values.begin(), values.end()}, rows,
                                   one_scale);
  if (const auto* const none = std::get_if<NoIntegers>(&result)) {
    refuse(node, fmt::format("{}: {}", parameter_name(parameter_value), none->reason));
    return std::nullopt;
  }
  return std::get<IntegerParameter>(std::move(result));
}

std::optional<IntegerFormat> IntegerLowering::format_of(NodeId quantizer) {
  const auto format = activation_integers(graph_, state_, quantizer);
  if (const auto* const none = std::get_if<NoIntegers>(&format)) {
    refuse(quantizer, none->reason);
    return std::nullopt;
  }
  return std::get<IntegerFormat>(format);
}

const IntegerValue* IntegerLowering::find(Value value) const {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : &found->second;
}

const IntegerValue* IntegerLowering::operand(NodeId node, std::size_t index) {
  const Value value = graph_.input(node, index);
  if (const IntegerValue* integer = find(value)) return integer;
  if (float_.contains(value.node))
    give_up(node);
  else
    refuse(node, fmt::format("{} is not quantized", graph_.name(value)));
  return nullptr;
}

const IntegerValue* IntegerLowering::rounded_operand(NodeId node, std::size_t index) {
  const Value value = graph_.input(node, index);
  const IntegerValue* const integer = find(value);
  if (integer != nullptr && !integer->is_sum && integer->scales.size() == 1) return integer;
  // Behind a place that stays float as well: a quantizer is missing here, whatever becomes of that.
  refuse(node, fmt::format("{} is not quantized", graph_.name(value)));
  return nullptr;
}

std::vector<NodeId> IntegerLowering::quantizers_of(NodeId node) {
  std::vector<NodeId> quantizers;
  for (const Use& use : graph_.uses(node)) {
    if (use.kind == Use::Kind::Operand && use.operand == 0 && graph_.is(use.user, "quantize")) {
      quantizers.push_back(use.user);
      continue;
    }
    refuse(node, use.kind == Use::Kind::Operand
                     ? fmt::format("{} reads it without a quantizer", graph_.name(use.user))
                     : "the output is not quantized");
    return {};
  }
  return quantizers;
}

void IntegerLowering::refuse(NodeId node, const std::string& reason) {
  if (!float_.insert(node).second) return;
  places_.push_back(fmt::format("{}: {}", described(graph_, node), reason));
}

void IntegerLowering::copy(NodeId node) {
  NodeSpec spec{.name = graph_.name(node),
                .op = graph_.op(node).name,
                .inputs = {},
                .attributes = graph_.attributes(node),
                .types = graph_.types(node)};
  for (std::size_t i = 0; i < graph_.inputs(node).size(); ++i)
    spec.inputs.push_back(plain_operand(node, i));
  const NodeId copied = integer_.add(std::move(spec));
  for (std::size_t i = 0; i < graph_.types(node).size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    plain_[{node, index}] = {copied, index};
  }
}

Value IntegerLowering::plain_operand(NodeId node, std::size_t index) const {
  const Value value = graph_.input(node, index);
  if (value.is_none()) return kNone;
  const auto found = plain_.find(value);
  check(found != plain_.end(), "operands that are no floats to be lowered before their readers");
  return found->second;
}

Value IntegerLowering::add_state(const std::string& name, const std::vector<std::int64_t>& values,
                                 std::vector<std::int64_t> dims, const char* role,
                                 const std::optional<IntegerRange>& range) {
  Tensor tensor(ops::storage_of(range.value_or(narrowest_range(values))), std::move(dims));
  ops::write_integers(tensor, values);
  if (const std::optional<NodeId> found = integer_.find(name))
    if (const auto state = integer_state_.find(name);
        state != integer_state_.end() && identical(state->second, tensor))
      return {*found, 0};
  Type type{.dtype = tensor.dtype(), .shape = {}};
  for (const std::int64_t size : tensor.dims()) type.shape.emplace_back(size);
  const Value added = add({.name = integer_.unique_name(name),
                           .op = "state",
                           .inputs = {},
                           .attributes = {{"role", std::string(role)}},
                           .types = {type}});
  integer_state_[integer_.name(added.node)] = std::move(tensor);
  return added;
}

IntegerValue IntegerLowering::in_format(Value value, const IntegerFormat& format) {
  return {.value = value,
          .scales = {format.scale},
          .channel_axis = -1,
          .low = format.range.low(),
          .high = format.range.high(),
          .is_sum = false};
}

IntegerValue IntegerLowering::requant(NodeId place, const std::string& name,
                                      const IntegerValue& from, const IntegerFormat& to) {
  std::vector<double> ratios;
  for (const double scale : from.scales) ratios.push_back(scale / to.scale);
  const numerics::ScaleMultipliers multipliers =
      numerics::multipliers_of(ratios, numerics::kMultiplierBits);
  const bool is_one = std::ranges::all_of(multipliers.multipliers, [&](std::int64_t multiplier) {
    return multiplier == multipliers.multipliers.front();
  });
  const bool changes_nothing = is_one && multipliers.multipliers.front() == 1 &&
                               multipliers.shift == 0 && from.low >= to.range.low() &&
                               from.high <= to.range.high();
  if (changes_nothing && !from.is_sum) {
    IntegerValue same = from;
    same.scales = {to.scale};
    return same;
  }
  if (multipliers.shift < -62 || multipliers.shift > 62) {
    refuse(place, fmt::format("its scale {} is 2^{} times that of the result", from.scales.front(),
                              -multipliers.shift));
    return in_format(from.value, to);
  }
  NodeSpec spec{.name = name,
                .op = "requant",
                .inputs = {from.value},
                .attributes = ops::to_attributes(to.range, {to.scale})};
  if (is_one) {
    spec.attributes["multiplier"] = multipliers.multipliers.front();
  } else {
    const auto count = static_cast<std::int64_t>(multipliers.multipliers.size());
    spec.inputs.push_back(
        add_state(name + ".multipliers", multipliers.multipliers, {count}, "buffer"));
    if (from.channel_axis != -1) spec.attributes["axis"] = from.channel_axis;
  }
  if (multipliers.shift != 0) spec.attributes["shift"] = std::int64_t{multipliers.shift};
  return in_format(add(std::move(spec)), to);
}

}  // namespace lathe::compress
