#include "lathe/compress/bias_correction.h"

#include <map>
#include <optional>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/data_run.h"
#include "lathe/compress/layers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/engine/symbol_binding.h"
#include "lathe/ops/evaluate_parameter.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

constexpr const char* kTwin = "/rounded";

// A layer to correct and the state of its bias.
struct Correction {
  std::string layer, bias;
  std::optional<Quantizer> quantizer;  // of the bias
};

bool is_rounded(const Graph& graph, Value value) {
  if (graph.is(value.node, "quantize")) return true;
  const std::optional<std::size_t> masked = masked_operand(graph, value.node);
  return masked && is_rounded(graph, graph.input(value.node, *masked));
}

std::vector<Correction> find_corrections(const Graph& graph, std::vector<std::string>& notes) {
  std::vector<Correction> corrections;
  for (const Layer& layer : find_layers(graph)) {
    if (!is_rounded(graph, graph.input(layer.node, layer.input)) &&
        !is_rounded(graph, graph.input(layer.node, layer.weight)))
      continue;
    const std::string& name = graph.name(layer.node);
    const auto leave = [&](const std::string& reason) {
      notes.push_back(fmt::format("\"{}\": its mean error is not corrected: {}", name, reason));
    };
    if (!layer.bias) {
      leave("it has no bias");
      continue;
    }
    const Value bias = graph.input(layer.node, *layer.bias);
    Correction correction{name, graph.name(bias.node), std::nullopt};
    NodeId state = bias.node;
    for (const Quantizer& quantizer : find_quantizers(graph)) {
      if (quantizer.node != bias.node) continue;
      correction.quantizer = quantizer;
      state = graph.input(quantizer.node, 0).node;
      correction.bias = graph.name(state);
    }
    if (!graph.is(state, "state") || !is_read_once(graph, state) || !is_read_once(graph, bias.node))
      leave(fmt::format("its bias \"{}\" is not its own", correction.bias));
    else
      corrections.push_back(std::move(correction));
  }
  return corrections;
}

// A graph without rounding in which a twin of each layer to correct reads rounded inputs and a
// rounded weight; what the twin's result lacks, summed over rows, is an output of the layer's name.
// `state` gets the twins' weights.
Graph watch_losses(const io::Model& quantized, const std::vector<Correction>& corrections,
                   State& state) {
  Graph graph = measured_graph(quantized.graph);
  for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
  std::vector<NodeId> twins;
  for (const Layer& layer : find_layers(graph)) {
    const std::string name = graph.name(layer.node);
    const auto found = std::find_if(corrections.begin(), corrections.end(),
                                    [&](const Correction& one) { return one.layer == name; });
    if (found == corrections.end()) continue;
    const Value weight = graph.input(layer.node, layer.weight);
    const NodeId held = graph.insert_before(layer.node, {.name = name + kTwin + "_weight",
                                                         .op = "state",
                                                         .inputs = {},
                                                         .types = {graph.type(weight)}});
    state[graph.name(held)] = ops::evaluate_parameter(graph, quantized.state, weight);
    NodeSpec spec{.name = name + kTwin,
                  .op = graph.op(layer.node).name,
                  .inputs = graph.inputs(layer.node),
                  .attributes = graph.attributes(layer.node)};
    spec.inputs[layer.weight] = {held, 0};
    spec.inputs[*layer.bias] = {graph.at(found->bias), 0};
    twins.push_back(graph.insert_after(layer.node, std::move(spec)));
    const NodeId lost = graph.insert_after(
        twins.back(),
        {.name = name + "/lost", .op = "sub", .inputs = {{layer.node, 0}, {twins.back(), 0}}});
    const std::int64_t channel = ops::result_axis(graph, layer.node);
    NodeSpec sum{.name = name + "/lost_sum", .op = "sum_rows", .inputs = {{lost, 0}}};
    if (channel >= 0) {
      std::vector<std::int64_t> axes;
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(graph.types(lost)[0].rank()); ++i)
        if (i != channel) axes.push_back(i);
      sum.op = "sum";
      sum.attributes["axes"] = axes;
    }
    graph.set_output(name, {graph.insert_after(lost, std::move(sum)), 0});
  }
  // Everybody else reads floats.
  for (const Quantizer& quantizer : find_quantizers(graph))
    for (const Use& use : std::vector<Use>(graph.uses(quantizer.node)))
      if (use.kind == Use::Kind::Operand &&
          std::find(twins.begin(), twins.end(), use.user) == twins.end())
        graph.set_input(use.user, static_cast<std::size_t>(use.operand),
                        graph.input(quantizer.node, 0));
  unround_attention(graph);
  run_pass("remove-dead-nodes", graph);
  return graph;
}

}  // namespace

std::vector<std::string> correct_biases(const io::Model& original, io::Model& quantized,
                                        train::ExampleSource& examples, std::int64_t num_examples,
                                        const engine::ExecutionOptions& execution,
                                        const RangeRule& range) {
  std::vector<std::string> notes;
  const std::vector<Correction> corrections = find_corrections(quantized.graph, notes);
  if (corrections.empty()) return notes;
  // Weights as they were, scales as they are.
  State state = quantized.state;
  for (const auto& [name, value] : original.state)
    if (state.contains(name)) state[name] = value;
  const Graph graph = watch_losses(quantized, corrections, state);
  std::map<std::string, std::vector<double>> sums;
  std::map<std::string, double> counts;
  run_on_data(graph, state, examples, num_examples, execution, [&](const DataBatch& batch) {
    const SymbolValues symbols = engine::bind_symbols(graph, batch.feed);
    for (const auto& [layer, lost] : batch.outputs) {
      std::vector<double>& sum = sums[layer];
      sum.resize(static_cast<std::size_t>(lost.num_elements()), 0.0);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += lost.at(static_cast<std::int64_t>(i));
      counts[layer] +=
          static_cast<double>(num_elements(graph.types(graph.at(layer))[0].dims(symbols)) /
                              std::max<std::int64_t>(1, lost.num_elements()));
    }
  });
  for (const Correction& correction : corrections) {
    const std::span<float> bias = quantized.state.at(correction.bias).mutable_data<float>();
    const std::vector<double>& lost = sums.at(correction.layer);
    for (std::size_t i = 0; i < bias.size(); ++i)
      bias[i] += static_cast<float>(lost[i] / std::max(1.0, counts.at(correction.layer)));
    if (correction.quantizer)
      set_parameter_scale(quantized.graph, quantized.state, *correction.quantizer, range);
  }
  return notes;
}

}  // namespace lathe::compress
