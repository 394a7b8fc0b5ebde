#include "lathe/compress/quantization_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "lathe/compress/packed_weights.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/numerics/error_measures.h"
#include "lathe/ops/channel_matrix.h"

namespace lathe::compress {
namespace {

// Keys that share the local scale of a row of attention's weights, to count its bits with: any
// number would do, since it is the sequence's.
constexpr std::int64_t kKeysOfARow = 128;

// Of values rounded, against what they should be.
double sqnr_of(const NumberFormat& format, QuantizeArgs args, std::span<const float> wanted) {
  std::vector<float> rounded(wanted.size());
  args.y = rounded.data();
  format.quantize(args);
  return numerics::measure_error(wanted, rounded).sqnr();
}

// `state` with the values of `original` where it has them.
State merged(State state, const State& original) {
  for (const auto& [name, value] : original)
    if (state.contains(name)) state[name] = value;
  return state;
}

}  // namespace

std::vector<TensorReport> report_tensors(const Graph& graph, const State& state,
                                         const std::map<std::string, Observation>& observations,
                                         const State& original) {
  std::vector<TensorReport> reports;
  const State before = merged(state, original);
  double noise = 0;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    const std::shared_ptr<const NumberFormat> format = parse_format(quantizer.format);
    TensorReport report{.tensor = quantizer.is_parameter ? quantizer.state : quantizer.tensor,
                        .role = quantizer.role,
                        .format = quantizer.format,
                        .sqnr = std::numeric_limits<double>::quiet_NaN()};
    if (quantizer.is_parameter) {
      const Tensor value = parameter_value(graph, state, quantizer);
      const FormatMatrix matrix = format_matrix(graph, state, quantizer.node, value);
      report.elements = value.num_elements();
      report.bits = format->bits_per_element(matrix.args.rows, matrix.args.columns);
      const FormatMatrix wanted =
          format_matrix(graph, state, quantizer.node, parameter_value(graph, before, quantizer));
      report.sqnr = sqnr_of(*format, matrix.args, wanted.values.data<float>());
    } else {
      const std::int64_t columns = graph.types(quantizer.node)[0].axis(-1).constant();
      report.bits = format->bits_per_element(1 << 20, columns);
      const auto seen = observations.find(graph.name(quantizer.node));
      if (seen != observations.end() && !seen->second.rows.empty()) {
        const std::vector<float>& rows = seen->second.rows;
        const FormatMatrix matrix = format_matrix(
            graph, state, quantizer.node,
            Tensor::from<float>({static_cast<std::int64_t>(rows.size()) / columns, columns},
                                std::span<const float>(rows)));
        report.sqnr = sqnr_of(*format, matrix.args, rows);
      }
    }
    if (!std::isnan(report.sqnr)) noise += std::pow(10, -report.sqnr / 10);
    reports.push_back(std::move(report));
  }
  for (const RoundedAttention& each : find_rounded_attention(graph))
    reports.push_back({.tensor = graph.name(each.node),
                       .role = TensorRole::AttentionWeights,
                       .format = each.format,
                       .bits = parse_format(each.format)->bits_per_element(1 << 20, kKeysOfARow),
                       .sqnr = std::numeric_limits<double>::quiet_NaN()});
  for (TensorReport& report : reports)
    if (!std::isnan(report.sqnr) && noise > 0)
      report.share_of_error = std::pow(10, -report.sqnr / 10) / noise;
  return reports;
}

std::vector<std::string> quantized_layers(const Graph& graph) {
  std::set<std::string> rounded;
  for (const Quantizer& quantizer : find_quantizers(graph))
    rounded.insert(quantizer.layers.begin(), quantizer.layers.end());
  for (const RoundedAttention& each : find_rounded_attention(graph))
    rounded.insert(graph.name(each.node));
  std::vector<std::string> layers;
  for (const NodeId id : graph.topological_order())
    if (!graph.is(id, "quantize") && rounded.contains(graph.name(id)))
      layers.push_back(graph.name(id));
  return layers;
}

Graph quantize_only(const Graph& graph, const std::string& layer) {
  Graph result = graph;
  unround_attention(result);
  for (const RoundedAttention& each : find_rounded_attention(graph))
    if (graph.name(each.node) == layer)
      result.set_attribute(each.node, "weight_format", each.format);
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    const Value rounded = result.input(quantizer.node, 0);
    const bool is_read = std::ranges::find(quantizer.layers, layer) != quantizer.layers.end();
    for (const Use& use : std::vector<Use>(result.uses(quantizer.node))) {
      // A result that is rounded for the outside belongs to the layer that gives it.
      if (use.kind == Use::Kind::Output && graph.name(rounded.node) != layer)
        result.set_output(use.output, rounded);
      if (use.kind != Use::Kind::Operand) continue;
      // What is computed from a rounded parameter, such as its product with a mask, is the layer's.
      const bool is_other_layer =
          std::ranges::find(quantizer.layers, graph.name(use.user)) != quantizer.layers.end() &&
          graph.name(use.user) != layer;
      if (!is_read || is_other_layer)
        result.set_input(use.user, static_cast<std::size_t>(use.operand), rounded);
    }
  }
  run_pass("remove-dead-nodes", result);
  return result;
}

ModelBits count_bits(const Graph& graph, const State& state) {
  ModelBits bits;
  for (const NodeId id : graph.nodes_of("state")) {
    const StateRole role = state_role(graph, id);
    if (!is_of_model(role)) continue;
    const double elements = static_cast<double>(state.find(graph.name(id))->second.num_elements());
    bits.stored += 8.0 * static_cast<double>(size_of(graph.types(id)[0].dtype)) * elements;
    // A float model has neither masks nor what belongs to a format.
    if (role == StateRole::Parameter || role == StateRole::Buffer) bits.floats += 32 * elements;
  }
  for (const NodeId id : graph.nodes_of("decode"))
    bits.floats += 32 * static_cast<double>(graph.types(id)[0].num_elements().constant());
  // What somebody reads as floats besides is stored as floats.
  const std::vector<std::string> packable = packable_parameters(graph);
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (std::find(packable.begin(), packable.end(), quantizer.state) == packable.end()) continue;
    const Type matrix = ops::matrix_type("quantize", graph.type(quantizer.parameter),
                                         graph.attribute(quantizer.node).integer("axis"));
    const std::int64_t elements = matrix.num_elements().constant();
    const std::int64_t columns = matrix.axis(-1).constant();
    const std::shared_ptr<const NumberFormat> format = parse_format(quantizer.format);
    // Scales that are handed in are states of their own and counted as such.
    const double per_element = format->facts().scale_source == ScaleSource::Given
                                   ? format->facts().element_bits
                                   : format->bits_per_element(elements / columns, columns);
    bits.stored += (per_element - 32) * static_cast<double>(elements);
  }
  return bits;
}

}  // namespace lathe::compress
