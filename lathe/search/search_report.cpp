#include "lathe/search/search_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "lathe/io/atomic_file.h"
#include "lathe/report/html_page.h"
#include "lathe/report/named_bars.h"
#include "lathe/report/plot.h"
#include "lathe/search/search_studies.h"
#include "lathe/study/importance.h"

namespace lathe::search {
namespace {

using study::TrialState;

// What a trial came to, as far as it was trained: the accuracy, less the cost of its bits.
std::optional<double> score_of(const study::TrialRecord& trial) {
  if ((trial.state != TrialState::Complete && trial.state != TrialState::Pruned) ||
      trial.values.empty())
    return std::nullopt;
  return trial.values.front();
}

// A number that trials have as an attribute.
std::optional<double> number_of(const study::TrialRecord& trial, std::string_view name) {
  const auto found = trial.user_attributes.find(name);
  if (found == trial.user_attributes.end()) return std::nullopt;
  const nlohmann::json value = nlohmann::json::parse(found->second, nullptr, false);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string candidate_text(const Candidate& candidate) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : candidate.architecture)
    parts.push_back(fmt::format("{} {}", key, to_text(value)));
  std::map<std::string, int> counts;
  for (const auto& [layer, formats] : candidate.formats)
    for (const auto& [role, format] : formats)
      if (role == compress::TensorRole::Weights) ++counts[format];
  for (const auto& [format, count] : counts) parts.push_back(fmt::format("{} {}", count, format));
  for (const auto& [key, value] : candidate.recipe.items())
    parts.push_back(fmt::format("{} {}", key, value.dump()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string score_name(const SearchOptions& options) {
  return options.bit_cost > 0 ? fmt::format("accuracy - {} x bits", options.bit_cost) : "accuracy";
}

// Whether it tried one family of formats alone.
bool is_of_family(const SearchResult::Study& study) {
  return study.sampler.starts_with(family_study(""));
}

// Of samplers, or of families alone.
std::string best_chart(const SearchResult& result, const SearchOptions& options, bool of_families,
                       bool is_zoomed) {
  std::vector<report::Series> series;
  double best = 0;
  for (const SearchResult::Study& study : result.studies) {
    if (is_of_family(study) != of_families) continue;
    report::Series line{.name = study.sampler, .y = best_so_far(study.history)};
    for (std::size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(i + 1));
    if (!line.y.empty()) best = std::max(best, line.y.back());
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
    report::Series given_up{.name = study.sampler + ", given up on the way"};
    for (const study::TrialRecord& trial : study.history.trials()) {
      const std::optional<double> accuracy = score_of(trial);
      if (!accuracy) continue;
      report::Series& points = trial.state == TrialState::Complete ? whole : given_up;
      points.x.push_back(trial.number + 1);
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

// Accuracy against bits: every complete trial, and those that no other beats in both.
std::string front_chart(const SearchResult& result, const char* bits, const std::string& label) {
  std::vector<report::Series> series;
  std::vector<std::pair<double, double>> points;
  for (const SearchResult::Study& study : result.studies) {
    report::Series dots{.name = study.sampler};
    for (const study::TrialRecord& trial : study.history.trials()) {
      const std::optional<double> x = number_of(trial, bits), y = number_of(trial, "accuracy");
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

// The three curves of models that are compressed on the way.
constexpr std::array kCurves{std::pair(kUncompressed, "uncompressed"),
                             std::pair(kCompressed, "compressed"),
                             std::pair("accuracy", "compressed and trained")};

// What complete trials have of a curve, by number.
std::vector<double> curve_of(const SearchResult& result, const char* attribute) {
  std::vector<double> values;
  for (const SearchResult::Study& study : result.studies)
    for (const study::TrialRecord& trial : study.history.trials())
      if (const auto value = number_of(trial, attribute);
          value && trial.state == TrialState::Complete && number_of(trial, kCompressed))
        values.push_back(*value);
  return values;
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

// How many layers have each family of formats.
std::vector<std::pair<std::string, double>> family_counts(const Candidate& candidate) {
  std::map<std::string, double> counts;
  for (const auto& [layer, formats] : candidate.formats)
    for (const auto& [role, format] : formats)
      if (role == compress::TensorRole::Weights) ++counts[format.substr(0, format.find(':'))];
  return {counts.begin(), counts.end()};
}

}  // namespace

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

report::Table curves_table(const SearchResult& result) {
  report::Table table({"curve", "trials", "best", "mean", "deviation"});
  for (const auto& [attribute, name] : kCurves) {
    const std::vector<double> values = curve_of(result, attribute);
    if (values.empty()) continue;
    const double average = mean(values);
    double squares = 0;
    for (const double value : values) squares += (value - average) * (value - average);
    table.row(
        {name, std::to_string(values.size()), fmt::format("{:.4f}", std::ranges::max(values)),
         fmt::format("{:.4f}", average),
         values.size() < 2
             ? "-"
             : fmt::format("{:.4f}", std::sqrt(squares / static_cast<double>(values.size() - 1)))});
  }
  return table;
}

std::vector<double> best_so_far(const study::History& history) {
  std::vector<double> best;
  for (const study::TrialRecord& trial : history.trials()) {
    const std::optional<double> accuracy =
        trial.state == TrialState::Complete ? score_of(trial) : std::nullopt;
    if (best.empty() && !accuracy) continue;
    best.push_back(std::max(best.empty() ? 0 : best.back(), accuracy.value_or(0)));
  }
  return best;
}

StudySummary summarize(const SearchResult::Study& study) {
  StudySummary summary{.sampler = study.sampler};
  double sum = 0, squares = 0;
  int count = 0;
  for (const study::TrialRecord& trial : study.history.trials()) {
    ++summary.trials;
    summary.complete += trial.state == TrialState::Complete;
    summary.given_up += trial.state == TrialState::Pruned;
    summary.failed += trial.state == TrialState::Fail;
    summary.copied += trial.user_attributes.contains("copied_from");
    const std::optional<double> accuracy = score_of(trial);
    if (!accuracy) continue;
    if (trial.user_attributes.contains("collapsed")) {
      ++summary.at_chance;
      continue;
    }
    if (trial.state != TrialState::Complete) continue;
    if (count == 0 || *accuracy > summary.best) {
      summary.best = *accuracy;
      summary.best_trial = trial.number;
    }
    summary.least = count == 0 ? *accuracy : std::min(summary.least, *accuracy);
    sum += *accuracy;
    squares += *accuracy * *accuracy;
    ++count;
  }
  if (count > 0) summary.mean = sum / count;
  if (count > 1)
    summary.deviation =
        std::sqrt(std::max(0.0, (squares - count * summary.mean * summary.mean) / (count - 1)));
  return summary;
}

report::Table studies_table(const SearchResult& result) {
  report::Table table({"sampler", "trials", "complete", "given up", "failed", "at chance", "copied",
                       "best", "in trial", "mean", "deviation", "least"});
  for (const SearchResult::Study& study : result.studies) {
    const StudySummary s = summarize(study);
    const auto number = [&](double value) {
      return s.best_trial < 0 ? std::string("-") : fmt::format("{:.4f}", value);
    };
    table.row({s.sampler, std::to_string(s.trials), std::to_string(s.complete),
               std::to_string(s.given_up), std::to_string(s.failed), std::to_string(s.at_chance),
               std::to_string(s.copied), number(s.best),
               s.best_trial < 0 ? "-" : std::to_string(s.best_trial), number(s.mean),
               number(s.deviation), number(s.least)});
  }
  return table;
}

report::Table finalists_table(const SearchResult& result) {
  std::vector<std::string> headers{"found by", "trial", "then", "again, mean", "each"};
  if (result.is_precision)
    headers.insert(headers.end(), {"weight bits", "data bits", "weights rounded"});
  headers.insert(headers.end(), {"parameters", "what it is"});
  report::Table table(headers);
  for (const Finalist& finalist : result.finalists) {
    std::vector<std::string> each;
    for (const double accuracy : finalist.accuracies)
      each.push_back(fmt::format("{:.4f}", accuracy));
    std::vector<std::string> row{
        finalist.sampler, std::to_string(finalist.trial), fmt::format("{:.4f}", finalist.found),
        fmt::format("{:.4f}", finalist.mean()), fmt::format("{}", fmt::join(each, " "))};
    if (result.is_precision)
      row.insert(row.end(), {fmt::format("{:.3f}", finalist.bits.weights),
                             fmt::format("{:.3f}", finalist.bits.data),
                             fmt::format("{:.1f} %", 100 * finalist.bits.rounded_weights)});
    row.insert(row.end(),
               {std::to_string(finalist.parameters), candidate_text(finalist.candidate)});
    table.row(std::move(row));
  }
  return table;
}

bool is_compared_on_test(const SearchResult& result) {
  return result.finalists.size() > 1 && !result.finalists[1].whole_accuracies.empty();
}

report::Table whole_table(const SearchResult& result) {
  report::Table table({"found by", "trial", "weight bits", "data bits", "test, mean", "each",
                       "all layers alike", "what it is"});
  for (const Finalist& finalist : result.finalists)
    table.row({finalist.sampler, std::to_string(finalist.trial),
               fmt::format("{:.3f}", finalist.bits.weights),
               fmt::format("{:.3f}", finalist.bits.data),
               fmt::format("{:.4f}", mean(finalist.whole_accuracies)),
               fmt::format("{:.4f}", fmt::join(finalist.whole_accuracies, " ")),
               finalist.is_uniform ? "yes" : "no", candidate_text(finalist.candidate)});
  return table;
}

report::Table formats_table(const Candidate& candidate) {
  report::Table table({"layer", "weights", "data"});
  const auto text = [](const compress::RoleFormats& formats, compress::TensorRole role) {
    const auto found = formats.find(role);
    return found == formats.end() ? std::string("float") : found->second;
  };
  for (const auto& [layer, formats] : candidate.formats)
    table.row({layer, text(formats, compress::TensorRole::Weights),
               text(formats, compress::TensorRole::Inputs)});
  return table;
}

void write_report(const SearchResult& result, const SearchOptions& options,
                  const std::filesystem::path& directory) {
  report::HtmlPage page(result.is_precision ? "Search of number formats"
                                            : "Search of architectures");
  page.section("Result");
  std::vector<std::pair<std::string, std::string>> figures;
  if (!result.finalists.empty())
    figures.emplace_back("mean accuracy of the chosen one",
                         fmt::format("{:.4f}", result.finalists.front().mean()));
  if (result.test_accuracy)
    figures.emplace_back("test accuracy", fmt::format("{:.4f}", *result.test_accuracy));
  if (!result.finalists.empty() && !result.finalists.front().whole_accuracies.empty())
    figures.emplace_back("test accuracy trained on all, mean",
                         fmt::format("{:.4f}", mean(result.finalists.front().whole_accuracies)));
  page.figures(figures);
  page.paragraph(fmt::format(
      "Accuracies are of {}; up to {:.4f} guessing has by luck. The best trials were trained again "
      "with {} other seeds, and the best mean is chosen.",
      result.measured_on, result.chance_level, options.seeds));
  page.table(finalists_table(result));
  if (is_compared_on_test(result)) {
    page.paragraph("Trained on all of train and tested, with each of the seeds:");
    page.table(whole_table(result));
  }
  if (result.is_precision && !result.finalists.empty())
    page.table(formats_table(result.finalists.front().candidate), "formats of the chosen model");
  if (options.bit_cost > 0)
    page.paragraph(fmt::format(
        "Trials are compared by the accuracy less {} for each bit of the mean of weights' and "
        "data's average bits.",
        options.bit_cost));
  page.section("Studies");
  page.table(studies_table(result));
  const auto add = [&](const std::string& name, const std::string& svg) {
    io::write_atomically(directory / (name + ".svg"), svg);
    page.svg(svg);
  };
  add("best", best_chart(result, options, false, false));
  add("best-zoomed", best_chart(result, options, false, true));
  if (std::ranges::any_of(result.studies, is_of_family)) {
    add("families", best_chart(result, options, true, false));
    add("families-zoomed", best_chart(result, options, true, true));
  }
  if (result.has_curves) {
    add("curves", curves_chart(result));
    page.table(curves_table(result));
  }
  add("trials", trials_chart(result, options));
  if (result.is_precision) {
    add("weight-bits",
        front_chart(result, "weight_bits", "average bits of weights, scales included"));
    add("data-bits", front_chart(result, "data_bits", "average bits of data, scales included"));
  }
  if (const std::string& cost = options.front;
      !cost.empty() && cost != "weight-bits" && cost != "data-bits")
    add("front", front_chart(result, cost.c_str(), cost));
  if (result.is_precision && !result.finalists.empty())
    add("counts", report::named_bars("Families of the chosen model", "layers",
                                     family_counts(result.finalists.front().candidate)));
  if (!result.longer_accuracies.empty()) {
    page.section("The chosen model, trained for longer");
    add("longer", longer_chart(result.longer_accuracies, "Accuracy after each epoch", "epoch",
                               "accuracy on " + result.measured_on));
    add("longer-loss", longer_chart(result.longer_losses, "Loss", "step", "loss"));
  }
  page.section("What matters");
  for (const SearchResult::Study& study : result.studies) {
    const auto importance = study::parameter_importance(study.history);
    if (importance.empty()) continue;
    std::vector<std::pair<std::string, double>> most(
        importance.begin(), importance.begin() + static_cast<std::ptrdiff_t>(
                                                     std::min<std::size_t>(12, importance.size())));
    page.svg(report::named_bars("Importance by " + study.sampler, "share", most));
  }
  io::write_atomically(directory / "report.html", page.str());
}

}  // namespace lathe::search
