#include "lathe/experiment/quantize_report.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/size_target.h"
#include "lathe/experiment/figures.h"
#include "lathe/experiment/rounding_levels.h"
#include "lathe/report/html_page.h"
#include "lathe/report/plot.h"

namespace lathe::experiment {
namespace {

// The values that a quantizer rounds: a parameter's, or what was seen of an activation.
std::vector<double> values_of(const compress::Quantizer& quantizer, const Graph& graph,
                              const State& state, const compress::QuantizeResult& result) {
  Tensor parameter;
  std::span<const float> values;
  if (quantizer.is_parameter) {
    parameter = compress::parameter_value(graph, state, quantizer);
    values = parameter.data<float>();
  } else {
    const auto seen = result.observations.find(graph.name(quantizer.node));
    if (seen != result.observations.end()) values = seen->second.sample;
  }
  // A picture shows no more than so many.
  constexpr std::size_t kMost = 100'000;
  const std::size_t stride = std::max<std::size_t>(1, values.size() / kMost);
  std::vector<double> some;
  for (std::size_t i = 0; i < values.size(); i += stride)
    some.push_back(static_cast<double>(values[i]));
  return some;
}

// The end of a path that a chart has room for: `layer.0.output.dense`.
std::string short_name(std::string name) {
  constexpr std::size_t kRoom = 24;
  while (name.size() > kRoom && name.find('.') != std::string::npos)
    name.erase(0, name.find('.') + 1);
  return name;
}

}  // namespace

report::Table tensor_table(const std::vector<compress::TensorReport>& tensors) {
  report::Table table(
      {"tensor", "role", "format", "elements", "bits", "SQNR dB", "share of error"});
  for (const compress::TensorReport& each : tensors)
    table.row({each.tensor, std::string(name(each.role)), each.format,
               each.elements == 0 ? "-" : fmt::format("{}", each.elements),
               fmt::format("{:.2f}", each.bits),
               std::isnan(each.sqnr) ? "-" : fmt::format("{:.1f}", each.sqnr),
               fmt::format("{:.1f} %", 100 * each.share_of_error)});
  return table;
}

report::Table sensitivity_table(const Sensitivity& sensitivity) {
  report::Table table({"layer alone", "loss", "rise", "accuracy"});
  table.row({"none", fmt::format("{:.5f}", sensitivity.loss), "", ""});
  for (const compress::LayerSensitivity& each : sensitivity.layers)
    table.row({each.layer, fmt::format("{:.5f}", each.loss),
               fmt::format("{:+.5f}", each.loss - sensitivity.loss),
               fmt::format("{:.4f}", each.accuracy)});
  return table;
}

std::string quantize_page(const std::string& title, const Quantized& quantized,
                          const std::optional<Sensitivity>& sensitivity,
                          const QuantizeSummary& summary) {
  const Graph& graph = quantized.model.graph;
  report::HtmlPage page(title);
  std::vector<std::pair<std::string, std::string>> figures = {
      {"quantizers", fmt::format("{}", quantized.result.quantizers)},
      {"size before", compress::bytes_text(summary.bytes_before)},
      {"size after", compress::bytes_text(summary.bytes_after)}};
  if (summary.before && summary.after) {
    const std::vector<MeasuredFigure> before = figures_of(*summary.before),
                                      after = figures_of(*summary.after);
    figures.emplace_back(before[0].name + " before", fmt::format("{:.4f}", before[0].value));
    figures.emplace_back(after[0].name + " after", fmt::format("{:.4f}", after[0].value));
  }
  page.figures(figures);
  report::Table facts({"what", "how much"});
  for (const auto& [name, text] : summary_facts(summary)) facts.row({name, text});
  page.table(facts);
  page.section("Tensors").table(tensor_table(quantized.tensors));
  if (sensitivity) {
    page.section("Sensitivity").table(sensitivity_table(*sensitivity));
    std::vector<std::string> layers;
    report::BarSeries rise{.name = "rise of the loss", .values = {}};
    for (const compress::LayerSensitivity& each : sensitivity->layers) {
      layers.push_back(short_name(each.layer));
      rise.values.push_back(each.loss - sensitivity->loss);
    }
    page.svg(report::bar_chart({.title = "Rounding one layer alone",
                                .x = {.label = "layer"},
                                .y = {.label = "rise of the loss"}},
                               layers, {rise}));
  }
  page.section("Values");
  for (const compress::Quantizer& quantizer : compress::find_quantizers(graph)) {
    const std::vector<double> values =
        values_of(quantizer, graph, quantized.model.state, quantized.result);
    if (values.empty()) continue;
    const std::string tensor = quantizer.is_parameter ? quantizer.state : quantizer.tensor;
    const std::optional<RoundingLevels> levels =
        levels_of(quantizer, graph, quantized.model.state, values);
    report::HistogramMarks marks;
    std::string label = "value";
    if (levels) {
      marks.levels = levels->levels;
      marks.low = levels->low;
      marks.high = levels->high;
      label = fmt::format("value; {} levels{}, {:.2f} % of the values clipped", levels->count,
                          levels->low ? "" : " of each row or block", 100 * levels->clipped);
    }
    page.svg(report::histogram({.title = fmt::format("{}, {}", tensor, quantizer.format),
                                .x = {.label = label},
                                .y = {.label = "values"},
                                .height = 260},
                               values, 60, marks));
  }
  return page.str();
}

}  // namespace lathe::experiment
