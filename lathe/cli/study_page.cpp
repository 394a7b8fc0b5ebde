#include "lathe/cli/study_page.h"

#include <algorithm>

#include "lathe/cli/trial_text.h"
#include "lathe/report/html_page.h"

namespace lathe::cli {
namespace {

constexpr std::size_t kMostRows = 20;

// The best trials: the front, or the first of a single objective's order.
report::Table best_table(const StoredStudy& study, const PlotSource& source) {
  report::Table table({"trial", "value", "seconds", "parameters"});
  std::vector<const study::TrialRecord*> trials;
  if (study.record.directions.size() > 1) {
    for (const int number : study.best())
      trials.push_back(&study.history.trials()[static_cast<std::size_t>(number)]);
  } else {
    trials = source.table.trials;
    std::erase_if(trials, [](const auto* trial) { return !study::is_feasible(*trial); });
    std::stable_sort(trials.begin(), trials.end(), [&](const auto* a, const auto* b) {
      return study::is_better(study.record.directions[0], a->values[0], b->values[0]);
    });
  }
  if (trials.size() > kMostRows) trials.resize(kMostRows);
  for (const study::TrialRecord* trial : trials) {
    const std::optional<double> seconds = trial_seconds(*trial);
    table.row({fmt::format("{}", trial->number), values_text(trial->values),
               seconds ? fmt::format("{:.2f}", *seconds) : "-",
               parameters_text(trial->parameters)});
  }
  return table;
}

report::Table settings_table(const StoredStudy& study) {
  report::Table table({"setting", "value"});
  std::vector<std::string> directions;
  for (const study::Direction direction : study.record.directions)
    directions.emplace_back(direction_name(direction));
  table.row({"storage", study.storage->description()});
  table.row({"objectives", fmt::format("{}", fmt::join(directions, ", "))});
  for (const char* name : {"sampler", "pruner", "seed"}) table.row({name, study.setting(name)});
  for (const auto& [key, text] : study.record.user_attributes) table.row({key, text});
  return table;
}

}  // namespace

std::string study_page(const StoredStudy& study, const PlotSource& source) {
  report::HtmlPage page(fmt::format("Study {}", study.record.name));
  std::size_t pruned = 0, failed = 0;
  for (const study::TrialRecord& trial : study.history.trials()) {
    pruned += trial.state == study::TrialState::Pruned;
    failed += trial.state == study::TrialState::Fail;
  }
  const std::vector<int> best = study.best();
  std::vector<std::pair<std::string, std::string>> figures = {
      {"trials", fmt::format("{}", study.history.trials().size())},
      {"complete", fmt::format("{}", source.table.num_rows())}};
  if (pruned > 0) figures.emplace_back("pruned", fmt::format("{}", pruned));
  if (failed > 0) figures.emplace_back("failed", fmt::format("{}", failed));
  if (!best.empty() && study.record.directions.size() == 1) {
    const study::TrialRecord& trial = study.history.trials()[static_cast<std::size_t>(best[0])];
    figures.emplace_back("best value", values_text(trial.values));
    figures.emplace_back("in trial", fmt::format("{}", trial.number));
  } else if (!best.empty()) {
    figures.emplace_back("on the Pareto front", fmt::format("{}", best.size()));
  }
  page.section("Result").figures(figures);
  if (!best.empty()) page.table(best_table(study, source), "The best trials");
  for (const PlotKind& kind : plot_kinds())
    if (kind.missing(source).empty()) page.section(kind.title).svg(kind.draw(source));
  page.section("Settings").table(settings_table(study));
  if (study.space) {
    report::Table table({"parameter", "values", "depends on"});
    for (const study::SpaceParameter& parameter : *study.space)
      table.row({parameter.name, study::describe(*parameter.distribution), parameter.parent});
    page.details(fmt::format("{} parameters", study.space->size()), table);
  }
  return page.str();
}

}  // namespace lathe::cli
