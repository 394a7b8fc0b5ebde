// A study as the plain data that report draws.
#include "lathe/cli/study_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/cli/study_text.h"
#include "lathe/cli/trial_text.h"
#include "lathe/report/markup.h"
#include "lathe/study/importance.h"
#include "lathe/study/math/pareto.h"
#include "lathe/study/objective_names.h"

namespace lathe::cli {
namespace {

using report::ChartTrial;
using report::StudyData;
using study::TrialRecord;
using study::TrialState;

constexpr std::size_t kMostBestTrials = 20;  // of a page
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

report::Axis axis_of(const study::Parameter& parameter) {
  report::Axis axis{.label = parameter.name};
  if (const auto* real = std::get_if<study::FloatDistribution>(&*parameter.distribution))
    axis.is_logarithmic = real->log;
  if (const auto* whole = std::get_if<study::IntDistribution>(&*parameter.distribution))
    axis.is_logarithmic = whole->log;
  if (const auto* list = std::get_if<study::CategoricalDistribution>(&*parameter.distribution))
    for (const study::Choice& choice : list->choices) axis.categories.push_back(value_text(choice));
  return axis;
}

bool is_drawn(const TrialRecord& trial, std::size_t num_objectives) {
  return trial.state == TrialState::Complete && trial.values.size() == num_objectives &&
         std::ranges::all_of(trial.values, [](double value) { return std::isfinite(value); });
}

ChartTrial::State state_of(TrialState state) {
  switch (state) {
    case TrialState::Complete:
      return ChartTrial::State::Complete;
    case TrialState::Pruned:
      return ChartTrial::State::Pruned;
    case TrialState::Fail:
      return ChartTrial::State::Failed;
    case TrialState::Running:
      return ChartTrial::State::Running;
    case TrialState::Waiting:
      break;
  }
  return ChartTrial::State::Waiting;
}

// Why a trial failed, on a line of its own.
std::string reason_line(const TrialRecord& trial) {
  const auto reason = trial.user_attributes.find("fail_reason");
  if (reason == trial.user_attributes.end()) return "";
  const nlohmann::ordered_json text = attribute_json(reason->second);
  return "\n" + report::shorten(text.is_string() ? text.get<std::string>() : reason->second, 200);
}

ChartTrial chart_trial(const TrialRecord& trial) {
  return {.number = trial.number,
          .state = state_of(trial.state),
          .values = trial.values,
          .reports = {trial.intermediate_values.begin(), trial.intermediate_values.end()},
          .tooltip = fmt::format(
              "trial {}: {}{}\n{}{}", trial.number,
              trial.state == TrialState::Complete ? "" : state_text(trial.state) + " ",
              trial.values.empty() ? "" : values_text(trial.values),
              report::shorten(parameters_text(trial.parameters), 400), reason_line(trial))};
}

void add_row(StudyData& data, const TrialRecord& trial) {
  for (const study::Parameter& parameter : trial.parameters) {
    auto column = std::ranges::find(data.parameters, parameter.name,
                                    [](const auto& each) { return each.axis.label; });
    if (column == data.parameters.end())
      column = data.parameters.insert(column, {.axis = axis_of(parameter)});
    column->values.resize(data.rows.size(), kNone);
    column->values.push_back(parameter.value);
  }
  data.rows.push_back(data.trials.size() - 1);
}

std::vector<bool> front_of(const StudyData& data, const study::History& history) {
  std::vector<study::Losses> points;
  std::vector<double> violations;
  for (const std::size_t index : data.rows) {
    const TrialRecord& trial = history.trials()[index];
    points.push_back(study::to_losses(trial.values, history.directions()));
    violations.push_back(study::violation(trial));
  }
  std::vector<bool> is_front(points.size(), false);
  for (const int index : study::non_dominated(points, violations))
    is_front[static_cast<std::size_t>(index)] = true;
  return is_front;
}

// The front, or the first of a single objective's order.
report::Table best_table(const StoredStudy& study, const StudyData& data) {
  const std::vector<std::string> labels = study::objective_labels(study.record);
  report::Table table(
      {"trial", fmt::format("{}", fmt::join(labels, ", ")), "seconds", "parameters"});
  std::vector<const TrialRecord*> trials;
  if (study.record.directions.size() > 1) {
    for (const int number : study.best())
      trials.push_back(&study.history.trials()[static_cast<std::size_t>(number)]);
  } else {
    for (const std::size_t index : data.rows) trials.push_back(&study.history.trials()[index]);
    std::erase_if(trials, [](const auto* trial) { return !study::is_feasible(*trial); });
    std::stable_sort(trials.begin(), trials.end(), [&](const auto* a, const auto* b) {
      return study::is_better(study.record.directions[0], a->values[0], b->values[0]);
    });
  }
  if (trials.size() > kMostBestTrials) trials.resize(kMostBestTrials);
  for (const TrialRecord* trial : trials) {
    const std::optional<double> seconds = trial_seconds(*trial);
    table.row({fmt::format("{}", trial->number), values_text(trial->values),
               seconds ? fmt::format("{:.2f}", *seconds) : "-",
               parameters_text(trial->parameters)});
  }
  return table;
}

report::Table settings_table(const StoredStudy& study) {
  report::Table table({"setting", "value"});
  table.row({"storage", study.storage->description()});
  table.row({"objectives", fmt::format("{}", fmt::join(objective_texts(study.record), ", "))});
  for (const char* name : {"sampler", "pruner", "seed"}) table.row({name, study.setting(name)});
  for (const auto& [key, text] : study.record.user_attributes) table.row({key, text});
  return table;
}

}  // namespace

StudyData chart_data(const StoredStudy& study, std::size_t objective,
                     const std::vector<std::string>& parameters) {
  const std::vector<study::Direction>& directions = study.record.directions;
  StudyData data{.name = study.record.name, .objectives = {}, .objective = objective};
  const std::vector<std::string> labels = study::objective_labels(study.record);
  for (std::size_t i = 0; i < directions.size(); ++i)
    data.objectives.push_back(
        {.name = labels[i], .is_maximized = directions[i] == study::Direction::Maximize});
  for (const TrialRecord& trial : study.history.trials()) {
    data.trials.push_back(chart_trial(trial));
    if (is_drawn(trial, directions.size())) add_row(data, trial);
  }
  for (report::ParameterColumn& column : data.parameters)
    column.values.resize(data.rows.size(), kNone);
  data.is_front = front_of(data, study.history);
  data.importance =
      study::parameter_importance(study.history, {.objective = static_cast<int>(objective)});
  std::vector<std::string> names;
  for (const report::ParameterColumn& column : data.parameters) names.push_back(column.axis.label);
  for (const std::string& name : parameters)
    if (data.find(name) == nullptr) throw unknown_name("parameter", name, names);
  data.chosen = parameters;
  return data;
}

report::StudyPage page_data(const StoredStudy& study, StudyData data) {
  report::StudyPage page{.data = std::move(data), .settings = settings_table(study)};
  const auto count = [&](TrialState state) {
    return std::ranges::count(study.history.trials(), state, &TrialRecord::state);
  };
  page.figures = {{"trials", fmt::format("{}", study.history.trials().size())},
                  {"complete", fmt::format("{}", page.data.rows.size())}};
  if (count(TrialState::Pruned) > 0)
    page.figures.emplace_back("pruned", fmt::format("{}", count(TrialState::Pruned)));
  if (count(TrialState::Fail) > 0)
    page.figures.emplace_back("failed", fmt::format("{}", count(TrialState::Fail)));
  if (count(TrialState::Running) > 0)
    page.figures.emplace_back("running", fmt::format("{}", count(TrialState::Running)));
  if (count(TrialState::Waiting) > 0)
    page.figures.emplace_back("waiting", fmt::format("{}", count(TrialState::Waiting)));
  const std::vector<int> best = study.best();
  if (!best.empty() && study.record.directions.size() == 1) {
    const TrialRecord& trial = study.history.trials()[static_cast<std::size_t>(best[0])];
    page.figures.emplace_back("best " + study::objective_labels(study.record)[0],
                              values_text(trial.values));
    page.figures.emplace_back("in trial", fmt::format("{}", trial.number));
  } else if (!best.empty()) {
    page.figures.emplace_back("on the Pareto front", fmt::format("{}", best.size()));
  }
  if (!best.empty()) page.best = best_table(study, page.data);
  if (study.space) {
    page.parameters.emplace(std::vector<std::string>{"parameter", "values", "depends on"});
    for (const study::SpaceParameter& parameter : *study.space)
      page.parameters->row(
          {parameter.name, study::describe(*parameter.distribution), parameter.parent});
  }
  return page;
}

}  // namespace lathe::cli
