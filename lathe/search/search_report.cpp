#include "lathe/search/search_report.h"

#include <algorithm>
#include <cmath>

#include "lathe/io/atomic_file.h"
#include "lathe/report/html_page.h"
#include "lathe/report/named_bars.h"
#include "lathe/report/plot.h"
#include "lathe/study/importance.h"

namespace lathe::search {
namespace {

using study::TrialState;

// The accuracy of a trial as far as it came.
std::optional<double> accuracy_of(const study::TrialRecord& trial) {
  if ((trial.state != TrialState::Complete && trial.state != TrialState::Pruned) ||
      trial.values.empty())
    return std::nullopt;
  return trial.values.front();
}

std::string architecture_text(const Candidate& candidate) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : candidate.architecture)
    parts.push_back(fmt::format("{} {}", key, to_text(value)));
  for (const auto& [key, value] : candidate.recipe.items())
    parts.push_back(fmt::format("{} {}", key, value.dump()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string best_chart(const SearchResult& result, bool is_zoomed) {
  std::vector<report::Series> series;
  double best = 0;
  for (const SearchResult::Study& study : result.studies) {
    report::Series line{.name = study.sampler, .y = best_so_far(study.history)};
    for (std::size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(i + 1));
    if (!line.y.empty()) best = std::max(best, line.y.back());
    series.push_back(std::move(line));
  }
  report::Chart chart{.title = is_zoomed ? "Best so far, near the best" : "Best so far",
                      .x = {.label = "trials"},
                      .y = {.label = "accuracy on " + result.measured_on}};
  if (is_zoomed) chart.y.low = best - 0.02;
  return report::line_chart(chart, series);
}

std::string trials_chart(const SearchResult& result) {
  std::vector<report::Series> series;
  for (const SearchResult::Study& study : result.studies) {
    report::Series whole{.name = study.sampler};
    report::Series given_up{.name = study.sampler + ", given up on the way"};
    for (const study::TrialRecord& trial : study.history.trials()) {
      const std::optional<double> accuracy = accuracy_of(trial);
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
                                .y = {.label = "accuracy as far as it was trained"}},
                               series);
}

}  // namespace

std::vector<double> best_so_far(const study::History& history) {
  std::vector<double> best;
  for (const study::TrialRecord& trial : history.trials()) {
    const std::optional<double> accuracy =
        trial.state == TrialState::Complete ? accuracy_of(trial) : std::nullopt;
    if (best.empty() && !accuracy) continue;
    best.push_back(std::max(best.empty() ? 0 : best.back(), accuracy.value_or(0)));
  }
  return best;
}

StudySummary summarize(const SearchResult::Study& study, double chance_level) {
  StudySummary summary{.sampler = study.sampler};
  double sum = 0, squares = 0;
  int count = 0;
  for (const study::TrialRecord& trial : study.history.trials()) {
    ++summary.trials;
    summary.complete += trial.state == TrialState::Complete;
    summary.given_up += trial.state == TrialState::Pruned;
    summary.failed += trial.state == TrialState::Fail;
    summary.copied += trial.user_attributes.contains("copied_from");
    const std::optional<double> accuracy = accuracy_of(trial);
    if (!accuracy) continue;
    if (*accuracy <= chance_level) {
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
    const StudySummary s = summarize(study, result.chance_level);
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
  report::Table table(
      {"found by", "trial", "then", "again, mean", "each", "parameters", "what it is"});
  for (const Finalist& finalist : result.finalists) {
    std::vector<std::string> each;
    for (const double accuracy : finalist.accuracies)
      each.push_back(fmt::format("{:.4f}", accuracy));
    table.row({finalist.sampler, std::to_string(finalist.trial),
               fmt::format("{:.4f}", finalist.found), fmt::format("{:.4f}", finalist.mean()),
               fmt::format("{}", fmt::join(each, " ")), std::to_string(finalist.parameters),
               architecture_text(finalist.candidate)});
  }
  return table;
}

void write_report(const SearchResult& result, const SearchOptions& options,
                  const std::filesystem::path& directory) {
  report::HtmlPage page("Search of architectures");
  page.section("Result");
  std::vector<std::pair<std::string, std::string>> figures;
  if (!result.finalists.empty())
    figures.emplace_back("mean accuracy of the chosen one",
                         fmt::format("{:.4f}", result.finalists.front().mean()));
  if (result.test_accuracy)
    figures.emplace_back("test accuracy", fmt::format("{:.4f}", *result.test_accuracy));
  page.figures(figures);
  page.paragraph(fmt::format(
      "Accuracies are of {}; up to {:.4f} guessing has by luck. The best trials were trained again "
      "with {} other seeds, and the best mean is chosen.",
      result.measured_on, result.chance_level, options.seeds));
  page.table(finalists_table(result));
  page.section("Studies");
  page.table(studies_table(result));
  const auto add = [&](const std::string& name, const std::string& svg) {
    io::write_atomically(directory / (name + ".svg"), svg);
    page.svg(svg);
  };
  add("best", best_chart(result, false));
  add("best-zoomed", best_chart(result, true));
  add("trials", trials_chart(result));
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
