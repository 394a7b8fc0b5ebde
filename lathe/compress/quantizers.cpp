#include "lathe/compress/quantizers.h"

#include <algorithm>
#include <set>

#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::compress {
namespace {

constexpr const char* kWeightFormat = "weight_format";

bool is_rounded(const Graph& graph, NodeId id) {
  return graph.is(id, "quantize") || graph.is(id, "decode");
}

class Inserter {
 public:
  Inserter(Graph& graph, State& state, const std::vector<QuantizationRule>& rules)
      : graph_(graph), state_(state), rules_(rules), used_(rules.size(), false) {
    for (const NodeId id : graph.topological_order())
      if (is_rounded(graph, id)) old_.insert(id);
  }

  Insertion run() {
    // Names of layers are the user's; the graph changes under way.
    const std::vector<NodeId> order = graph_.topological_order();
    for (const NodeId id : order)
      if (!graph_.op(id).is_source) visit(id);
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
    const std::string& op = graph_.op(id).name;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const QuantizationRule& rule = rules_[i];
      if (!rule.matches(op, graph_.name(id))) continue;
      used_[i] = true;
      with_place(rule.place, [&] { apply(id, rule); });
      return;
    }
  }

  void apply(NodeId id, const QuantizationRule& rule) {
    const auto format = [&](TensorRole role) -> std::shared_ptr<const NumberFormat> {
      const auto found = rule.formats.find(role);
      return found == rule.formats.end() ? nullptr : parse_format(found->second);
    };
    const bool is_linear = graph_.is(id, "linear");
    // A rule for everything, or for the names that hold a pattern, means the layers that multiply;
    // any other op is rounded when asked for by its type or its whole name.
    const bool is_named =
        rule.by == QuantizationRule::By::Type || rule.by == QuantizationRule::By::Name;
    if (is_linear || is_named) {
      if (const auto f = format(TensorRole::Inputs); f && has_operand(id, 0)) operand(id, 0, f);
      if (const auto f = format(TensorRole::Outputs)) result(id, f);
    }
    if (is_linear) {
      if (const auto f = format(TensorRole::Weights)) operand(id, 1, f);
      if (const auto f = format(TensorRole::Bias); f && has_operand(id, 2)) operand(id, 2, f);
    }
    if (graph_.is(id, "embedding")) {
      if (const auto f = format(TensorRole::Embeddings)) lookup(id, f);
    }
    if (graph_.is(id, "attention")) {
      if (const auto f = format(TensorRole::Attention))
        for (std::size_t i = 0; i < 3; ++i) operand(id, i, f);
      if (const auto f = format(TensorRole::AttentionWeights)) weights(id, f->facts().text);
    }
  }

  void weights(NodeId id, const std::string& format) {
    if (!graph_.attribute(id).text(kWeightFormat).empty())
      fail("{}: its weights are quantized already", graph_.name(id));
    check_format(TensorRole::AttentionWeights, format);
    graph_.set_attribute(id, kWeightFormat, format);
    ++result_.quantizers;
  }

  bool has_operand(NodeId id, std::size_t index) const {
    return index < graph_.inputs(id).size() && !graph_.inputs(id)[index].is_none();
  }

  void operand(NodeId id, std::size_t index, const std::shared_ptr<const NumberFormat>& format) {
    const Value x = graph_.input(id, index);
    if (graph_.type(x).dtype != DType::F32) return;
    if (old_.contains(x.node)) fail("{}: operand {} is quantized already", graph_.name(id), index);
    const std::string& text = format->facts().text;
    if (graph_.is(x.node, "quantize") && graph_.attribute(x.node).text("format") == text) return;
    const bool is_state = graph_.is(x.node, "state");
    const Value shared = find(x, text);
    graph_.set_input(id, index, !shared.is_none() ? shared : add(x, format, id, is_state));
  }

  void result(NodeId id, const std::shared_ptr<const NumberFormat>& format) {
    const Value y{id, 0};
    if (graph_.type(y).dtype != DType::F32) return;
    const std::vector<Use> readers = graph_.uses(id);
    for (const Use& use : readers)
      if (use.kind == Use::Kind::Operand && old_.contains(use.user) && use.operand == 0)
        fail("{}: its result is quantized already", graph_.name(id));
    const Value rounded = add(y, format, id, false);
    for (const Use& use : readers) {
      if (use.kind == Use::Kind::Output && graph_.output(use.output) == y)
        graph_.set_output(use.output, rounded);
      if (use.kind != Use::Kind::Operand) continue;
      const auto operand = static_cast<std::size_t>(use.operand);
      // A node with several results is read by others through the same list.
      if (graph_.input(use.user, operand) == y) graph_.set_input(use.user, operand, rounded);
    }
  }

  void lookup(NodeId id, const std::shared_ptr<const NumberFormat>& format) {
    if (old_.contains(graph_.input(id, 1).node))
      fail("{}: its table is quantized already", graph_.name(id));
    if (commutes_with_lookup(format->facts()))
      result(id, format);
    else
      operand(id, 1, format);
  }

  // A quantizer of this value in this format that another layer needed as well.
  Value find(Value x, const std::string& format) const {
    for (const NodeId user : graph_.users(x.node))
      if (graph_.is(user, "quantize") && graph_.input(user, 0) == x &&
          graph_.attribute(user).text("format") == format)
        return {user, 0};
    return kNone;
  }

  Value add(Value x, const std::shared_ptr<const NumberFormat>& format, NodeId reader,
            bool is_parameter) {
    const FormatFacts& facts = format->facts();
    const std::string tensor = graph_.name(x);
    if (!is_parameter && !facts.is_row_local)
      fail(
          "{}: {} has a scale for several rows, which are tokens here: use one whose rows are "
          "alone",
          tensor, facts.text);
    NodeSpec spec{.name = tensor + "/quantized",
                  .op = "quantize",
                  .inputs = {x},
                  .attributes = {{"format", facts.text}}};
    if (facts.scale_source == ScaleSource::Given) {
      if (!is_parameter && facts.granularity != Granularity::Tensor)
        fail(
            "{}: {} has a scale for each row, which are tokens here: use a format with one "
            "scale, a dynamic one, or one with blocks of its own",
            tensor, facts.text);
      const Type type{DType::F32, ops::given_scale_shape(*format, graph_.type(x))};
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
  std::set<NodeId> old_;  // quantizers that were there before
  std::vector<std::string> added_states_;
  Insertion result_;
};

TensorRole role_of(const Graph& graph, NodeId id, const Quantizer& quantizer) {
  for (const Use& use : graph.uses(id)) {
    if (use.kind != Use::Kind::Operand) continue;
    if (graph.is(use.user, "attention")) return TensorRole::Attention;
    if (graph.is(use.user, "embedding")) return TensorRole::Embeddings;
    if (graph.is(use.user, "linear") && use.operand == 1) return TensorRole::Weights;
    if (graph.is(use.user, "linear") && use.operand == 2) return TensorRole::Bias;
    if (graph.is(use.user, "linear")) return TensorRole::Inputs;
  }
  return quantizer.is_parameter ? TensorRole::Weights : TensorRole::Outputs;
}

}  // namespace

bool commutes_with_lookup(const FormatFacts& facts) {
  return facts.is_row_local &&
         !(facts.scale_source == ScaleSource::Given && facts.granularity != Granularity::Tensor);
}

const Tensor* state_operand(const Graph& graph, const State& state, NodeId node,
                            std::size_t index) {
  if (index >= graph.inputs(node).size() || graph.inputs(node)[index].is_none()) return nullptr;
  const NodeId operand = graph.input(node, index).node;
  const auto found = state.find(graph.name(operand));
  if (!graph.is(operand, "state") || found == state.end())
    fail("node \"{}\": operand {} is \"{}\", but must be a state", graph.name(node), index,
         graph.name(operand));
  return &found->second;
}

std::vector<Quantizer> find_quantizers(const Graph& graph) {
  std::vector<Quantizer> found;
  for (const NodeId id : graph.nodes_of("quantize")) {
    Quantizer quantizer;
    quantizer.node = id;
    quantizer.tensor = graph.name(graph.input(id, 0));
    quantizer.format = graph.attribute(id).text("format");
    const NodeId source = graph.input(id, 0).node;
    if (graph.is(source, "state")) {
      quantizer.is_parameter = true;
      quantizer.state = graph.name(source);
    } else if (graph.is(source, "embedding") && graph.is(graph.input(source, 1).node, "state")) {
      quantizer.is_parameter = true;
      quantizer.state = graph.name(graph.input(source, 1).node);
    }
    for (const NodeId user : graph.users(id)) quantizer.layers.push_back(graph.name(user));
    quantizer.role =
        graph.is(source, "embedding") ? TensorRole::Embeddings : role_of(graph, id, quantizer);
    found.push_back(std::move(quantizer));
  }
  return found;
}

std::vector<RoundedAttention> find_rounded_attention(const Graph& graph) {
  std::vector<RoundedAttention> found;
  for (const NodeId id : graph.nodes_of("attention"))
    if (const std::string format = graph.attribute(id).text(kWeightFormat); !format.empty())
      found.push_back({id, format});
  return found;
}

void unround_attention(Graph& graph) {
  for (const RoundedAttention& each : find_rounded_attention(graph))
    graph.remove_attribute(each.node, kWeightFormat);
}

bool is_quantized(const Graph& graph) {
  return !graph.nodes_of("quantize").empty() || !graph.nodes_of("decode").empty() ||
         !find_rounded_attention(graph).empty();
}

Insertion insert_quantizers(Graph& graph, State& state,
                            const std::vector<QuantizationRule>& rules) {
  return Inserter(graph, state, rules).run();
}

void bypass_quantizers(Graph& graph, const std::vector<NodeId>& quantizers) {
  for (const NodeId id : quantizers) graph.replace_all_uses({id, 0}, graph.input(id, 0));
  run_pass("remove-dead-nodes", graph);
}

}  // namespace lathe::compress
