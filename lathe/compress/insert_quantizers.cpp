#include "lathe/compress/insert_quantizers.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lathe/compress/layers.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/parameters.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/quantized_operands.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

using Format = std::shared_ptr<const NumberFormat>;

class Inserter {
 public:
  Inserter(Graph& graph, State& state, const std::vector<QuantizationRule>& rules)
      : graph_(graph),
        state_(state),
        rules_(rules),
        used_(rules.size(), false),
        parameters_(graph) {
    for (const char* const op : {"quantize", "decode"})
      for (const NodeId id : graph.nodes_of(op)) old_.insert(id);
  }

  Insertion run() {
    // Names of layers are the user's; the graph changes under way.
    const std::vector<NodeId> order = graph_.topological_order();
    const std::set<NodeId> without_data = layers_of_parameters(graph_);
    for (const NodeId id : order)
      if (!graph_.op(id).is_source && (!parameters_.contains({id, 0}) || without_data.contains(id)))
        visit(id);
    run_pass("remove-dead-nodes", graph_);
    verify(graph_);
    for (const std::string& name : added_states_)
      if (!graph_.find(name)) state_.erase(name);
    for (std::size_t i = 0; i < rules_.size(); ++i)
      if (!used_[i] && rules_[i].by != QuantizationRule::By::Any)
        result_.unused.push_back(fmt::format("{}: {}", rules_[i].place, rules_[i].match));
    return result_;
  }

 private:
  void visit(NodeId id) {
    const auto rule = rule_of(id);
    if (rule == rules_.end()) return;
    used_[static_cast<std::size_t>(rule - rules_.begin())] = true;
    with_place(rule->place, [&] { apply(id, *rule); });
  }

  // The first that matches.
  std::vector<QuantizationRule>::const_iterator rule_of(NodeId id) const {
    return std::ranges::find_if(rules_, [&](const QuantizationRule& rule) {
      return rule.matches(graph_.op(id).name, graph_.name(id));
    });
  }

  static Format format_of(const QuantizationRule& rule, TensorRole role) {
    const auto found = rule.formats.find(role);
    return found == rule.formats.end() ? nullptr : parse_format(found->second);
  }

  void apply(NodeId id, const QuantizationRule& rule) {
    const auto format = [&](TensorRole role) { return format_of(rule, role); };
    const std::optional<std::size_t> weight = find_operand(graph_, id, OperandRole::Weight);
    const std::optional<std::size_t> table = find_operand(graph_, id, OperandRole::Table);
    const bool is_layer = weight && is_parameter(graph_.input(id, *weight));
    // A rule for everything, or for the names that hold a pattern, means the layers that multiply
    // with parameters; any other op is rounded when asked for by its type or its whole name.
    const bool is_named =
        rule.by == QuantizationRule::By::Type || rule.by == QuantizationRule::By::Name;
    const bool has_data = !parameters_.contains({id, 0});
    if (is_layer || is_named) {
      if (const Format f = format(TensorRole::Inputs); f && has_data)
        for (const std::size_t i : input_operands(id)) operand(id, i, f, -1);
      if (const Format f = format(TensorRole::Outputs); f && has_data) result(id, f);
      if (const Format f = format(TensorRole::Weights); f && weight)
        operand(id, *weight, f, is_layer ? ops::weight_axis(graph_, id) : -1);
      if (const Format f = format(TensorRole::Bias))
        if (const auto bias = find_operand(graph_, id, OperandRole::Bias))
          operand(id, *bias, f, -1);
    }
    if (table && is_parameter(graph_.input(id, *table)))
      if (const Format f = format(TensorRole::Embeddings)) lookup(id, *table, f);
    for (const OperandRole role : {OperandRole::Query, OperandRole::Key, OperandRole::Content})
      if (const auto index = find_operand(graph_, id, role))
        if (const Format f = format(TensorRole::Attention)) operand(id, *index, f, -1);
    if (find_operand(graph_, id, OperandRole::Query))
      if (const Format f = format(TensorRole::AttentionWeights)) weights(id, f->facts().text);
  }

  // What a node is fed with: its input where its op says which that is, what attention reads, else
  // all that is computed from data.
  std::vector<std::size_t> input_operands(NodeId id) const {
    std::vector<std::size_t> found;
    for (const OperandRole role :
         {OperandRole::Input, OperandRole::Query, OperandRole::Key, OperandRole::Content})
      if (const auto index = find_operand(graph_, id, role)) found.push_back(*index);
    if (!found.empty()) return found;
    for (std::size_t i = 0; i < graph_.inputs(id).size(); ++i) {
      const Value value = graph_.inputs(id)[i];
      const bool is_fixed =
          !value.is_none() && (is_parameter(value) || graph_.is(value.node, "constant") ||
                               graph_.is(value.node, "state"));
      if (!value.is_none() && !is_fixed && operand_role(graph_, id, i) == OperandRole::Other)
        found.push_back(i);
    }
    return found;
  }

  // A quantizer that was just put in front of a parameter stands for it.
  bool is_parameter(Value value) const {
    if (graph_.is(value.node, "quantize") && !old_.contains(value.node))
      value = graph_.input(value.node, 0);
    return parameters_.contains(value);
  }

  void weights(NodeId id, const std::string& format) {
    if (!graph_.attribute(id).text(kWeightFormat).empty())
      fail("{}: its weights are quantized already", graph_.name(id));
    check_format(TensorRole::AttentionWeights, format);
    graph_.set_attribute(id, kWeightFormat, format);
    ++result_.quantizers;
  }

  // Whether a quantizer or codes of before have a part in a parameter.
  bool was_rounded(Value value) const {
    if (old_.contains(value.node)) return true;
    if (!parameters_.contains(value)) return false;
    return std::ranges::any_of(graph_.inputs(value.node), [&](const Value& operand) {
      return !operand.is_none() && was_rounded(operand);
    });
  }

  void operand(NodeId id, std::size_t index, const Format& format, std::int64_t axis) {
    const Value x = graph_.input(id, index);
    const Type& type = graph_.type(x);
    if (type.dtype != DType::F32) return;
    if (was_rounded(x)) fail("{}: operand {} is quantized already", graph_.name(id), index);
    const std::string& text = format->facts().text;
    if (graph_.is(x.node, "quantize") && graph_.attribute(x.node).text("format") == text) return;
    axis = ops::simplified_axis(static_cast<std::int64_t>(type.rank()), axis);
    const auto rounded = [&](Value value) {
      const Value shared = find(value, text, axis);
      return !shared.is_none() ? shared : add(value, format, id, axis);
    };
    const std::optional<std::size_t> masked = masked_operand(graph_, x.node);
    if (!masked || has_zero(*format)) {
      graph_.set_input(id, index, rounded(x));
      return;
    }
    // A format without a zero would fill the holes: the mask stands behind it.
    const Value mask = graph_.input(x.node, 1 - *masked);
    const NodeId quantizer = rounded(graph_.input(x.node, *masked)).node;
    graph_.set_input(id, index, mask_behind(graph_, quantizer, mask));
  }

  void result(NodeId id, const Format& format) {
    const Value y{id, 0};
    if (graph_.type(y).dtype != DType::F32) return;
    const std::vector<Use> readers = graph_.uses(id);
    for (const Use& use : readers)
      if (use.kind == Use::Kind::Operand && old_.contains(use.user) && use.operand == 0)
        fail("{}: its result is quantized already", graph_.name(id));
    const Value rounded = add(y, format, id, -1);
    for (const Use& use : readers) {
      if (use.kind == Use::Kind::Output && graph_.output(use.output) == y)
        graph_.set_output(use.output, rounded);
      if (use.kind != Use::Kind::Operand) continue;
      const auto operand = static_cast<std::size_t>(use.operand);
      // A node with several results is read by others through the same list.
      if (graph_.input(use.user, operand) == y) graph_.set_input(use.user, operand, rounded);
    }
  }

  void lookup(NodeId id, std::size_t table, const Format& format) {
    if (was_rounded(graph_.input(id, table)))
      fail("{}: its table is quantized already", graph_.name(id));
    const bool fills_holes =
        masked_operand(graph_, graph_.input(id, table).node) && !has_zero(*format);
    if (commutes_with_lookup(format->facts()) && !fills_holes &&
        !is_weight_too(graph_.input(id, table), *format))
      result(id, format);
    else
      operand(id, table, format, -1);
  }

  // Whether a layer multiplies with the table in the same format. One rounding serves both then,
  // and one set of codes can stand for it; rows rounded behind the lookup would keep the table as
  // floats.
  bool is_weight_too(Value table, const NumberFormat& format) const {
    const auto rank = static_cast<std::int64_t>(graph_.type(table).rank());
    return std::ranges::any_of(graph_.uses(table.node), [&](const Use& use) {
      if (use.kind != Use::Kind::Operand ||
          operand_role(graph_, use.user, static_cast<std::size_t>(use.operand)) !=
              OperandRole::Weight ||
          ops::simplified_axis(rank, ops::weight_axis(graph_, use.user)) !=
              ops::simplified_axis(rank, -1))
        return false;
      const auto rule = rule_of(use.user);
      const Format own = rule == rules_.end() ? nullptr : format_of(*rule, TensorRole::Weights);
      return own && own->facts().text == format.facts().text;
    });
  }

  // A quantizer of this value in this format that another layer needed as well.
  Value find(Value x, const std::string& format, std::int64_t axis) const {
    for (const NodeId user : graph_.users(x.node))
      if (graph_.is(user, "quantize") && graph_.input(user, 0) == x &&
          graph_.attribute(user).text("format") == format &&
          graph_.attribute(user).integer("axis") == axis)
        return {user, 0};
    return kNone;
  }

  // What a quantizer and its scales are called after: the state behind a parameter.
  std::string name_of(Value x) const {
    const std::vector<NodeId> sources = parameters_.sources(x);
    return sources.size() == 1 ? graph_.name(sources.front()) : graph_.name(x);
  }

  Value add(Value x, const Format& format, NodeId reader, std::int64_t axis) {
    const FormatFacts& facts = format->facts();
    const bool is_parameter = parameters_.contains(x);
    const std::string tensor = name_of(x);
    if (!is_parameter && !facts.is_row_local)
      fail(
          "{}: {} has a scale for several rows, which are tokens here: use one whose rows are "
          "alone",
          tensor, facts.text);
    NodeSpec spec{.name = tensor + "/quantized",
                  .op = "quantize",
                  .inputs = {x},
                  .attributes = {{"format", facts.text}}};
    if (axis >= 0) spec.attributes["axis"] = axis;
    if (facts.scale_source == ScaleSource::Given) {
      if (!is_parameter && facts.granularity != Granularity::Tensor)
        fail(
            "{}: {} has a scale for each row, which are tokens here: use a format with one "
            "scale, a dynamic one, or one with blocks of its own",
            tensor, facts.text);
      const Type type{DType::F32, ops::given_scale_shape(
                                      *format, ops::matrix_type("quantize", graph_.type(x), axis))};
      spec.inputs.push_back(new_state(tensor + ".scale", StateRole::Scale, type, 1));
      if (facts.has_zero_point)
        spec.inputs.push_back(new_state(tensor + ".zero", StateRole::Zero, type, 0));
    }
    ++result_.quantizers;
    // A result's quantizer follows its node, an operand's precedes its reader.
    const NodeId added = x.node == reader ? graph_.insert_after(reader, std::move(spec))
                                          : graph_.insert_before(reader, std::move(spec));
    return {added, 0};
  }

  Value new_state(const std::string& base, StateRole role, const Type& type, float value) {
    const std::string name = graph_.unique_name(base);
    const NodeId first = graph_.topological_order().front();
    const NodeId id =
        graph_.insert_before(first, {.name = name,
                                     .op = "state",
                                     .inputs = {},
                                     .attributes = {{"role", std::string(lathe::name(role))}},
                                     .types = {type}});
    Tensor tensor(DType::F32, type.dims({}));
    std::ranges::fill(tensor.mutable_data<float>(), value);
    state_[name] = std::move(tensor);
    added_states_.push_back(name);
    return {id, 0};
  }

  Graph& graph_;
  State& state_;
  const std::vector<QuantizationRule>& rules_;
  std::vector<bool> used_;
  const Parameters parameters_;  // of the graph as it was
  std::set<NodeId> old_;         // quantizers that were there before
  std::vector<std::string> added_states_;
  Insertion result_;
};

}  // namespace

Insertion insert_quantizers(Graph& graph, State& state,
                            const std::vector<QuantizationRule>& rules) {
  return Inserter(graph, state, rules).run();
}

}  // namespace lathe::compress
