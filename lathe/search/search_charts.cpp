#include "lathe/search/search_charts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lathe/core/number_format.h"
#include "lathe/report/named_bars.h"
#include "lathe/report/plot.h"
#include "lathe/search/trial_results.h"

namespace lathe::search {
namespace {

using study::TrialState;

constexpr int kWide = 900;

std::string score_name(const SearchOptions& options) {
  return options.bit_cost > 0 ? fmt::format("accuracy - {} x bits", options.bit_cost) : "accuracy";
}

}  // namespace

std::string best_chart(const SearchResult& result, const SearchOptions& options, bool of_families,
                       bool is_zoomed) {
  std::vector<report::Series> series;
  double best = 0;
  for (const SearchResult::Study& study : result.studies) {
    if (is_of_family(study) != of_families) continue;
    report::Series line{.name = study.sampler, .y = best_so_far(study.history)};
    for (std::size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(i + 1));
    if (!line.y.empty()) best = std::fmax(best, line.y.back());
    series.push_back(std::move(line));
  }
  report::Chart chart{.title = fmt::format("Best so far{}{}", of_families ? " by family" : "",
                                           is_zoomed ? ", near the best" : ""),
                      .x = {.label = "trials"},
                      .y = {.label = score_name(options) + " on " + result.measured_on}};
  if (is_zoomed) chart.y.low = best - 0.02;
  return report::line_chart(chart, series);
}

std::string trials_chart(const SearchResult& result, const SearchOptions& options) {
  std::vector<report::Series> series;
  for (const SearchResult::Study& study : result.studies) {
    report::Series whole{.name = study.sampler};
    report::Series given_up{.name = study.sampler + ", given up"};
    for (const study::TrialRecord& trial : study.history.trials()) {
      const std::optional<double> accuracy = score_of(trial);
      if (!accuracy) continue;
      report::Series& points = trial.state == TrialState::Complete ? whole : given_up;
      points.x.push_back(trial.number);
      points.y.push_back(*accuracy);
    }
    series.push_back(std::move(whole));
    if (!given_up.x.empty()) series.push_back(std::move(given_up));
  }
  return report::scatter_chart({.title = "Every trial",
                                .x = {.label = "trial"},
                                .y = {.label = score_name(options) + " as far as it was trained"}},
                               series);
}

std::string front_chart(const SearchResult& result, const char* cost, const std::string& label) {
  std::vector<report::Series> series;
  std::vector<std::pair<double, double>> points;
  for (const SearchResult::Study& study : result.studies) {
    report::Series dots{.name = study.sampler};
    for (const study::TrialRecord& trial : study.history.trials()) {
      const std::optional<double> x = number_of(trial, cost), y = number_of(trial, "accuracy");
      if (trial.state != TrialState::Complete || !x || !y) continue;
      dots.x.push_back(*x);
      dots.y.push_back(*y);
      points.emplace_back(*x, *y);
    }
    series.push_back(std::move(dots));
  }
  std::ranges::sort(points);
  report::Series front{.name = "front"};
  for (const auto& [x, y] : points) {
    if (!front.y.empty() && y <= front.y.back()) continue;
    front.x.push_back(x);
    front.y.push_back(y);
  }
  series.push_back(std::move(front));
  return report::scatter_chart({.title = "Accuracy against " + label,
                                .x = {.label = label},
                                .y = {.label = "accuracy on " + result.measured_on}},
                               series);
}

std::string curves_chart(const SearchResult& result) {
  std::vector<report::Series> series;
  for (const auto& [attribute, name] : kCurves) {
    report::Series best{.name = fmt::format("{}, best so far", name)}, own{.name = name};
    for (const double value : curve_of(result, attribute)) {
      own.x.push_back(static_cast<double>(own.x.size() + 1));
      own.y.push_back(value);
      best.x.push_back(own.x.back());
      best.y.push_back(best.y.empty() ? value : std::max(best.y.back(), value));
    }
    series.push_back(std::move(best));
    series.push_back(std::move(own));
  }
  return report::line_chart({.title = "Compression on the way",
                             .x = {.label = "trials"},
                             .y = {.label = "accuracy on " + result.measured_on}},
                            series);
}

std::string longer_chart(const std::vector<double>& values, const char* title, const char* x,
                         const std::string& y) {
  report::Series line{.name = y, .y = values};
  for (std::size_t i = 0; i < values.size(); ++i) line.x.push_back(static_cast<double>(i + 1));
  return report::line_chart({.title = title, .x = {.label = x}, .y = {.label = y}}, {line});
}

std::string families_chart(const Candidate& candidate) {
  std::map<std::string, double> counts;
  for (const auto& [layer, formats] : candidate.formats)
    for (const auto& [role, format] : formats)
      if (role == compress::TensorRole::Weights) ++counts[format.substr(0, format.find(':'))];
  return report::named_bars("Families of the chosen model", "layers",
                            {counts.begin(), counts.end()});
}

std::string formats_chart(const Candidate& candidate) {
  std::vector<std::pair<std::string, double>> bars;
  for (const auto& [layer, formats] : candidate.formats) {
    const auto found = formats.find(compress::TensorRole::Weights);
    const std::string text = found == formats.end() ? "float" : found->second;
    const auto format = parse_format(text);
    // Without what the names of all layers begin with, so that the rest is seen.
    constexpr std::string_view kLayers = ".layer.";
    const std::size_t place = layer.find(kLayers);
    const std::string name = place == std::string::npos ? layer : layer.substr(place + 1);
    bars.emplace_back(fmt::format("{}: {}", name, text),
                      format == nullptr ? 32 : format->facts().element_bits);
  }
  return report::named_bars("Formats of the chosen model's weights", "bits", bars, kWide);
}

}  // namespace lathe::search
