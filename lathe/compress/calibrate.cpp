#include "lathe/compress/calibrate.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/data_run.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/select_outputs.h"

namespace lathe::compress {
namespace {

// Enough values for a percentile of 99.99 % and for the least squared error.
constexpr std::int64_t kSampleSize = 1 << 17;
// Whole rows kept to tell how well a format does: a quarter of them from a batch.
constexpr std::size_t kRows = 256;

bool has_given_scale(const std::string& format) {
  return parse_format(format)->facts().scale_source == ScaleSource::Given;
}

void store(const Graph& graph, State& state, NodeId node, std::size_t operand,
           const std::vector<float>& values) {
  if (state_operand(graph, state, node, operand) == nullptr) return;
  Tensor& tensor = state.at(graph.name(graph.input(node, operand).node));
  check(static_cast<std::size_t>(tensor.num_elements()) == values.size(),
        "a scale for each that the quantizer reads");
  std::ranges::copy(values, tensor.mutable_data<float>().begin());
}

void set_scales(const Graph& graph, State& state, NodeId node, const std::string& format,
                const std::vector<numerics::ScaleAndZero>& chosen) {
  std::vector<float> scales, zeros;
  for (const numerics::ScaleAndZero& each : chosen) {
    scales.push_back(each.scale);
    zeros.push_back(each.zero);
  }
  store(graph, state, node, 1, scales);
  if (parse_format(format)->facts().has_zero_point) store(graph, state, node, 2, zeros);
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

void set_parameter_scales(const Graph& graph, State& state, const RangeRule& rule) {
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (!quantizer.is_parameter || !has_given_scale(quantizer.format)) continue;
    const Tensor& value = state.at(quantizer.state);
    const std::int64_t columns = value.dims().back();
    set_scales(graph, state, quantizer.node, quantizer.format,
               choose_scales(*parse_format(quantizer.format),
                             {value.data<float>(), value.num_elements() / columns, columns}, rule));
  }
}

bool needs_calibration(const Graph& graph) {
  for (const Quantizer& quantizer : find_quantizers(graph))
    if (!quantizer.is_parameter && has_given_scale(quantizer.format)) return true;
  return false;
}

std::map<std::string, Observation> observe_activations(
    const io::Model& model, const data::TokenizedDataset& dataset, std::int64_t num_examples,
    const engine::ExecutionOptions& execution, const std::function<bool(std::int64_t)>& progress) {
  Graph graph = select_outputs(model.graph, {"logits"});
  run_pass("pack-sequences", graph);
  std::vector<NodeId> nodes;
  std::vector<std::string> names;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    nodes.push_back(quantizer.node);
    if (quantizer.is_parameter) continue;
    names.push_back(graph.name(quantizer.node));
    graph.set_output("observed." + names.back(), graph.input(quantizer.node, 0));
  }
  bypass_quantizers(graph, nodes);
  unround_attention(graph);
  std::int64_t total_tokens = 0;
  for (std::int64_t i = 0; i < std::min(num_examples, dataset.size()); ++i)
    total_tokens += dataset.length(i);
  std::map<std::string, Observation> observations;
  run_on_data(
      graph, model.state, dataset, num_examples, execution,
      [&](const data::Batch& batch, const Feed& outputs) {
        const double share = static_cast<double>(batch.num_tokens()) /
                             static_cast<double>(std::max<std::int64_t>(1, total_tokens));
        for (const std::string& name : names) {
          const std::span<const float> values = outputs.at("observed." + name).data<float>();
          Observation& seen = observations[name];
          const auto columns =
              static_cast<std::size_t>(outputs.at("observed." + name).dims().back());
          if (seen.rows.size() < kRows * columns)
            seen.rows.insert(seen.rows.end(), values.begin(),
                             values.begin() + static_cast<std::ptrdiff_t>(
                                                  std::min(values.size(), kRows / 4 * columns)));
          observe(seen, values,
                  static_cast<std::int64_t>(static_cast<double>(values.size()) / share));
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
      fail("\"{}\" was never seen on the calibration data", quantizer.tensor);
    std::vector<float> values = seen->second.sample;
    values.push_back(static_cast<float>(seen->second.minimum));
    values.push_back(static_cast<float>(seen->second.maximum));
    set_scales(graph, state, quantizer.node, quantizer.format,
               choose_scales(*parse_format(quantizer.format),
                             {values, 1, static_cast<std::int64_t>(values.size())}, rule));
  }
}

}  // namespace lathe::compress
