#include "lathe/compress/calibrate.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/data_run.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

// Enough values for a percentile of 99.99 % and for the least squared error.
constexpr std::int64_t kSampleSize = 1 << 17;
// Whole rows kept to tell how well a format does: a quarter of them from a batch.
constexpr std::size_t kRows = 256;

bool has_given_scale(const std::string& format) {
  return parse_format(format)->facts().scale_source == ScaleSource::Given;
}

void store(const Graph& graph, State& state, NodeId node, OperandRole role,
           const std::vector<float>& values) {
  const NodeId operand = graph.input(node, operand_index(graph, node, role)).node;
  Tensor& tensor = state.at(graph.name(operand));
  check(static_cast<std::size_t>(tensor.num_elements()) == values.size(),
        "a scale for each that the quantizer reads");
  std::ranges::copy(values, tensor.mutable_data<float>().begin());
}

void set_scales(const Graph& graph, State& state, NodeId node,
                const std::vector<numerics::ScaleAndZero>& chosen) {
  std::vector<float> scales, zeros;
  for (const numerics::ScaleAndZero& each : chosen) {
    scales.push_back(each.scale);
    zeros.push_back(each.zero);
  }
  if (scale_of(graph, state, node) != nullptr)
    store(graph, state, node, OperandRole::Scale, scales);
  if (zero_of(graph, state, node) != nullptr) store(graph, state, node, OperandRole::Zero, zeros);
}

void observe(Observation& seen, std::span<const float> values, std::int64_t expected_total) {
  const std::int64_t stride = std::max<std::int64_t>(1, expected_total / kSampleSize);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!std::isfinite(value)) continue;
    if (seen.count == 0) seen.minimum = seen.maximum = value;
    seen.minimum = std::min(seen.minimum, value);
    seen.maximum = std::max(seen.maximum, value);
    // A stride that divides the width would look at some features only.
    if (seen.count % (stride | 1) == 0) seen.sample.push_back(values[i]);
    ++seen.count;
  }
}

}  // namespace

void set_parameter_scale(const Graph& graph, State& state, const Quantizer& quantizer,
                         const RangeRule& rule) {
  if (!has_given_scale(quantizer.format)) return;
  const FormatMatrix matrix =
      format_matrix(graph, state, quantizer.node, parameter_value(graph, state, quantizer));
  set_scales(
      graph, state, quantizer.node,
      choose_scales(*parse_format(quantizer.format),
                    {matrix.values.data<float>(), matrix.args.rows, matrix.args.columns}, rule));
}

void set_parameter_scales(const Graph& graph, State& state, const RangeRule& rule) {
  for (const Quantizer& quantizer : find_quantizers(graph))
    if (quantizer.is_parameter) set_parameter_scale(graph, state, quantizer, rule);
}

bool needs_calibration(const Graph& graph) {
  for (const Quantizer& quantizer : find_quantizers(graph))
    if (!quantizer.is_parameter && has_given_scale(quantizer.format)) return true;
  return false;
}

std::map<std::string, Observation> observe_activations(
    const io::Model& model, train::ExampleSource& examples, std::int64_t num_examples,
    const engine::ExecutionOptions& execution, const std::function<bool(std::int64_t)>& progress) {
  Graph graph = measured_graph(model.graph);
  for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
  std::vector<NodeId> nodes;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    nodes.push_back(quantizer.node);
    if (!quantizer.is_parameter)
      graph.set_output(graph.name(quantizer.node), graph.input(quantizer.node, 0));
  }
  bypass_quantizers(graph, nodes);
  unround_attention(graph);
  std::map<std::string, Observation> observations;
  if (graph.outputs().empty()) return observations;
  run_on_data(
      graph, model.state, examples, num_examples, execution,
      [&](const DataBatch& batch) {
        for (const auto& [name, tensor] : batch.outputs) {
          const std::span<const float> values = tensor.data<float>();
          Observation& seen = observations[name];
          const auto columns = static_cast<std::size_t>(tensor.dims().back());
          if (seen.rows.size() < kRows * columns)
            seen.rows.insert(seen.rows.end(), values.begin(),
                             values.begin() + static_cast<std::ptrdiff_t>(
                                                  std::min(values.size(), kRows / 4 * columns)));
          observe(seen, values,
                  static_cast<std::int64_t>(static_cast<double>(values.size()) / batch.share));
        }
      },
      progress);
  return observations;
}

void set_activation_scales(const Graph& graph, State& state,
                           const std::map<std::string, Observation>& observations,
                           const RangeRule& rule) {
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (quantizer.is_parameter || !has_given_scale(quantizer.format)) continue;
    const auto seen = observations.find(graph.name(quantizer.node));
    if (seen == observations.end() || seen->second.count == 0)
      fail("\"{}\" held no finite number on the calibration data", quantizer.tensor);
    std::vector<float> values = seen->second.sample;
    values.push_back(static_cast<float>(seen->second.minimum));
    values.push_back(static_cast<float>(seen->second.maximum));
    set_scales(graph, state, quantizer.node,
               choose_scales(*parse_format(quantizer.format),
                             {values, 1, static_cast<std::int64_t>(values.size())}, rule));
  }
}

}  // namespace lathe::compress
