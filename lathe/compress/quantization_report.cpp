#include "lathe/compress/quantization_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "lathe/compress/packed_weights.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/numerics/error_measures.h"

namespace lathe::compress {
namespace {

// Keys that share the local scale of a row of attention's weights, to count its bits with: any
// number would do, since it is the sequence's.
constexpr std::int64_t kKeysOfARow = 128;

// Of `values` rounded, against what they should be.
double sqnr_of(const NumberFormat& format, std::span<const float> values,
               std::span<const float> wanted, std::int64_t columns, const float* scales,
               const float* zeros) {
  std::vector<float> rounded(values.size());
  QuantizeArgs args;
  args.columns = columns;
  args.rows = static_cast<std::int64_t>(values.size()) / columns;
  args.x = values.data();
  args.y = rounded.data();
  args.scales = scales;
  args.zeros = zeros;
  format.quantize(args);
  return numerics::measure_error(wanted, rounded).sqnr();
}

const float* operand(const Graph& graph, const State& state, NodeId node, std::size_t index) {
  const Tensor* tensor = state_operand(graph, state, node, index);
  return tensor == nullptr ? nullptr : tensor->data<float>().data();
}

// A scale or a zero point, which a float model would not have.
bool is_of_format(const Graph& graph, NodeId state) {
  for (const Use& use : graph.uses(state)) {
    const bool is_scale =
        use.kind == Use::Kind::Operand && ((graph.is(use.user, "quantize") && use.operand > 0) ||
                                           (graph.is(use.user, "decode") && use.operand > 0));
    if (!is_scale) return false;
  }
  return true;
}

}  // namespace

std::vector<TensorReport> report_tensors(const Graph& graph, const State& state,
                                         const std::map<std::string, Observation>& observations,
                                         const State& original) {
  std::vector<TensorReport> reports;
  double noise = 0;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    const std::shared_ptr<const NumberFormat> format = parse_format(quantizer.format);
    TensorReport report{.tensor = quantizer.is_parameter ? quantizer.state : quantizer.tensor,
                        .role = quantizer.role,
                        .format = quantizer.format,
                        .sqnr = std::numeric_limits<double>::quiet_NaN()};
    const float* const scales = operand(graph, state, quantizer.node, 1);
    const float* const zeros = operand(graph, state, quantizer.node, 2);
    if (quantizer.is_parameter) {
      const Tensor& value = state.find(quantizer.state)->second;
      const std::int64_t columns = value.dims().back();
      report.elements = value.num_elements();
      report.bits = format->bits_per_element(report.elements / columns, columns);
      const auto before = original.find(quantizer.state);
      const Tensor& wanted = before == original.end() ? value : before->second;
      report.sqnr =
          sqnr_of(*format, value.data<float>(), wanted.data<float>(), columns, scales, zeros);
    } else {
      const std::int64_t columns = graph.types(quantizer.node)[0].axis(-1).constant();
      report.bits = format->bits_per_element(1 << 20, columns);
      const auto seen = observations.find(graph.name(quantizer.node));
      if (seen != observations.end() && !seen->second.rows.empty())
        report.sqnr =
            sqnr_of(*format, seen->second.rows, seen->second.rows, columns, scales, zeros);
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
  std::vector<std::string> layers;
  const std::vector<RoundedAttention> attentions = find_rounded_attention(graph);
  for (const NodeId id : graph.topological_order()) {
    if (graph.is(id, "quantize")) continue;
    if (std::ranges::find(attentions, id, &RoundedAttention::node) != attentions.end()) {
      layers.push_back(graph.name(id));
      continue;
    }
    for (const Value& value : graph.inputs(id))
      if (!value.is_none() && graph.is(value.node, "quantize")) {
        layers.push_back(graph.name(id));
        break;
      }
  }
  return layers;
}

Graph quantize_only(const Graph& graph, const std::string& layer) {
  Graph result = graph;
  unround_attention(result);
  for (const RoundedAttention& each : find_rounded_attention(graph))
    if (graph.name(each.node) == layer)
      result.set_attribute(each.node, "weight_format", each.format);
  for (const NodeId id : result.topological_order()) {
    if (result.name(id) == layer) continue;
    for (std::size_t i = 0; i < result.inputs(id).size(); ++i) {
      const Value value = result.inputs(id)[i];
      if (!value.is_none() && result.is(value.node, "quantize"))
        result.set_input(id, i, result.input(value.node, 0));
    }
  }
  // A result that is rounded for the outside belongs to the layer that gives it.
  for (const auto& [name, value] : std::vector(result.outputs())) {
    if (!result.is(value.node, "quantize")) continue;
    const Value rounded = result.input(value.node, 0);
    if (result.name(rounded.node) != layer) result.set_output(name, rounded);
  }
  run_pass("remove-dead-nodes", result);
  return result;
}

ModelBits count_bits(const Graph& graph, const State& state) {
  ModelBits bits;
  for (const NodeId id : graph.nodes_of("state")) {
    const double elements = static_cast<double>(state.find(graph.name(id))->second.num_elements());
    bits.stored += 8.0 * static_cast<double>(size_of(graph.types(id)[0].dtype)) * elements;
    const bool is_code = graph.types(id)[0].dtype == DType::U8;
    if (!is_code && !is_of_format(graph, id)) bits.floats += 32 * elements;
  }
  for (const NodeId id : graph.nodes_of("decode"))
    bits.floats += 32 * static_cast<double>(graph.types(id)[0].num_elements().constant());
  // What somebody reads as floats besides is stored as floats.
  const std::vector<std::string> packable = packable_parameters(graph);
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (std::find(packable.begin(), packable.end(), quantizer.state) == packable.end()) continue;
    const Tensor& value = state.find(quantizer.state)->second;
    const std::int64_t columns = value.dims().back();
    const double elements = static_cast<double>(value.num_elements());
    const std::shared_ptr<const NumberFormat> format = parse_format(quantizer.format);
    // Scales that are handed in are states of their own and counted as such.
    const double per_element =
        format->facts().scale_source == ScaleSource::Given
            ? format->facts().element_bits
            : format->bits_per_element(value.num_elements() / columns, columns);
    bits.stored += (per_element - 32) * elements;
  }
  return bits;
}

}  // namespace lathe::compress
