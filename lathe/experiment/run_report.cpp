#include "lathe/experiment/run_report.h"

#include "lathe/core/json_reader.h"
#include "lathe/data/text_file.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/chart_grid.h"
#include "lathe/report/layered_chart.h"

namespace lathe::experiment {
namespace {

using nlohmann::json;
using report::Layer;

constexpr int kCurveWidth = 560, kCurveHeight = 360;

struct Curves {
  Layer loss{.name = "training", .mark = Layer::Mark::Line, .opacity = 0.4};
  /// A batch's loss jumps about: the mean of about fifty steps shows where it goes.
  Layer smooth{.name = "its running mean", .mark = Layer::Mark::Line};
  Layer validation{.name = "validation", .mark = Layer::Mark::Rings};
  std::vector<Layer> measures = {};

  Layer& measure(const std::string& name) {
    for (Layer& layer : measures)
      if (layer.name == name) return layer;
    measures.push_back({.name = name, .mark = Layer::Mark::Line});
    return measures.back();
  }
};

void add(Layer& layer, double x, double y) {
  layer.x.push_back(x);
  layer.y.push_back(y);
}

Curves read_curves(const std::filesystem::path& file) {
  Curves curves;
  const std::string text = data::read_text_file(file);
  double mean = 0, weight = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const json line = parse_json(text.substr(begin, end - begin), file.string());
    begin = end + 1;
    const auto step = line.value("step", 0.0);
    if (const auto loss = line.find("loss"); loss != line.end() && loss->is_number()) {
      constexpr double kKept = 0.98;
      mean = kKept * mean + (1 - kKept) * loss->get<double>();
      weight = kKept * weight + (1 - kKept);
      add(curves.loss, step, loss->get<double>());
      add(curves.smooth, step, mean / weight);
    }
    for (const auto& [key, value] : line.items()) {
      constexpr std::string_view kPrefix = "validation_";
      if (!key.starts_with(kPrefix) || !value.is_number()) continue;
      const std::string name = key.substr(kPrefix.size());
      add(name == "loss" ? curves.validation : curves.measure(name),
          name == "loss" ? step : line.value("epoch", 0.0), value.get<double>());
    }
  }
  return curves;
}

}  // namespace

void write_curves(const std::filesystem::path& run) {
  const Curves curves = read_curves(run / "metrics.jsonl");
  std::vector<Layer> losses{curves.loss, curves.smooth};
  if (!curves.validation.x.empty()) losses.push_back(curves.validation);
  std::vector<std::string> charts{report::layered_chart({.title = "Loss",
                                                         .x = {.label = "step"},
                                                         .y = {.label = "loss"},
                                                         .width = kCurveWidth,
                                                         .height = kCurveHeight},
                                                        losses)};
  if (!curves.measures.empty())
    charts.push_back(report::layered_chart({.title = "Validation",
                                            .x = {.label = "epoch"},
                                            .y = {.label = "held-out examples"},
                                            .width = kCurveWidth,
                                            .height = kCurveHeight},
                                           curves.measures));
  io::write_atomically(run / "curves.svg",
                       report::chart_grid({.title = "Training of " + run.filename().string(),
                                           .columns = static_cast<int>(charts.size()),
                                           .cell_width = kCurveWidth,
                                           .cell_height = kCurveHeight},
                                          charts));
}

void write_results(const std::filesystem::path& run, const std::string& data,
                   const std::string& split, const nlohmann::ordered_json& evaluation) {
  nlohmann::ordered_json results = {{"data", data}, {"split", split}};
  results.update(evaluation);
  io::write_atomically(
      run / "results.json",
      results.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace lathe::experiment
