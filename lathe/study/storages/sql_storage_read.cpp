// Trials from the rows of a SqlStorage. Whatever is in them was written by others, so everything
// is checked and errors name the trial.
#include <algorithm>
#include <limits>

#include "lathe/study/storages/sql_storage.h"
#include "lathe/study/storages/stored_parameter.h"
#include "lathe/study/storages/time_text.h"

namespace lathe::study {
namespace {

// Ids that one statement asks for; a first look at a large study takes several.
constexpr std::size_t kBatch = 1000;

std::string list_text(const SqlDialect& dialect, std::span<const TrialRecord> trials) {
  std::string text(1, dialect.list_open);
  for (const TrialRecord& each : trials) {
    if (text.size() > 1) text += ',';
    text += std::to_string(each.id);
  }
  return text + dialect.list_close;
}

double stored_number(const SqlRow& row, std::size_t value, std::string_view column) {
  const std::string& type = row.text(value + 1, column);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (type == "FINITE") return row.number(value, column);
  if (type == "INF_POS") return kInfinity;
  if (type == "INF_NEG") return -kInfinity;
  if (type == "NAN") return std::numeric_limits<double>::quiet_NaN();
  fail("{} has type \"{}\", expected FINITE, INF_POS, INF_NEG or NAN", column, type);
}

int to_int(std::int64_t value, std::string_view column) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    fail("{} is {}, which is out of range", column, value);
  return static_cast<int>(value);
}

// Gives each row of a result to the trial that it belongs to. The trials are ordered by id.
template <typename Use>
void for_each_row(const SqlResult& rows, std::span<TrialRecord> trials, Use&& use) {
  for (std::size_t i = 0; i < rows.num_rows(); ++i) {
    const SqlRow row = rows.row(i);
    const TrialId id = row.whole(0, "trial_id");
    const auto found = std::ranges::lower_bound(trials, id, {}, &TrialRecord::id);
    if (found == trials.end() || found->id != id) continue;
    with_place(fmt::format("trial {}", found->number), [&] { use(row, *found); });
  }
}

}  // namespace

DistributionPtr SqlStorage::distribution(const std::string& json) {
  DistributionPtr& known = distributions_[json];
  if (!known) known = std::make_shared<const Distribution>(parse_distribution(json));
  return known;
}

TrialRecord SqlStorage::read_trial(const SqlRow& row) const {
  TrialRecord trial{.id = row.whole(0, "trials.trial_id"),
                    .number = to_int(row.whole(2, "trials.number"), "trials.number")};
  return with_place(fmt::format("trial {}", trial.number), [&] {
    const std::string& state = row.text(3, "trials.state");
    const std::optional<TrialState> parsed = parse_trial_state(state);
    if (!parsed) fail("trials.state is \"{}\"", state);
    trial.state = *parsed;
    if (!row.is_null(4)) trial.start = parse_time(row.text(4, "trials.datetime_start"));
    if (!row.is_null(5)) trial.complete = parse_time(row.text(5, "trials.datetime_complete"));
    return trial;
  });
}

void SqlStorage::read_content(std::span<TrialRecord> trials) {
  for (std::size_t begin = 0; begin < trials.size(); begin += kBatch) {
    const std::span<TrialRecord> batch =
        trials.subspan(begin, std::min(kBatch, trials.size() - begin));
    const std::string list = list_text(connection_->dialect(), batch);
    const std::vector<SqlCall> calls = {{&statements_.parameters, {list}},
                                        {&statements_.values, {list}},
                                        {&statements_.intermediate_values, {list}},
                                        {&statements_.user_attributes, {list}},
                                        {&statements_.system_attributes, {list}}};
    const std::vector<SqlResult> found = connection_->run(calls);
    for_each_row(found[0], batch, [&](const SqlRow& row, TrialRecord& trial) {
      const std::string& name = row.text(1, "trial_params.param_name");
      const double value = row.number(2, "trial_params.param_value");
      const DistributionPtr known = with_place(fmt::format("parameter \"{}\"", name), [&] {
        return distribution(row.text(3, "trial_params.distribution_json"));
      });
      trial.parameters.push_back(stored_parameter(name, known, value));
    });
    for_each_row(found[1], batch, [](const SqlRow& row, TrialRecord& trial) {
      const std::int64_t objective = row.whole(1, "trial_values.objective");
      if (objective != static_cast<std::int64_t>(trial.values.size()))
        fail("trial_values.objective is {}, expected {}", objective, trial.values.size());
      trial.values.push_back(stored_number(row, 2, "trial_values.value"));
    });
    for_each_row(found[2], batch, [](const SqlRow& row, TrialRecord& trial) {
      constexpr const char* kStep = "trial_intermediate_values.step";
      trial.intermediate_values[to_int(row.whole(1, kStep), kStep)] =
          stored_number(row, 2, "trial_intermediate_values.intermediate_value");
    });
    for_each_row(found[3], batch, [](const SqlRow& row, TrialRecord& trial) {
      trial.user_attributes[row.text(1, "trial_user_attributes.key")] =
          row.text(2, "trial_user_attributes.value_json");
    });
    for_each_row(found[4], batch, [](const SqlRow& row, TrialRecord& trial) {
      trial.system_attributes[row.text(1, "trial_system_attributes.key")] =
          row.text(2, "trial_system_attributes.value_json");
    });
  }
}

std::optional<TrialRecord> SqlStorage::find_trial(TrialId trial) {
  std::vector<TrialRecord> trials = {{.id = trial}};
  const SqlResult found =
      connection_->run({&statements_.these_trials, {list_text(connection_->dialect(), trials)}});
  if (found.num_rows() == 0) return {};
  trials.front() = read_trial(found.row(0));
  read_content(trials);
  return std::move(trials.front());
}

void SqlStorage::refresh(StudyId study, std::vector<TrialRecord>& known) {
  transact(Access::Read, [&](bool) {
    std::vector<TrialRecord> open;
    for (const TrialRecord& each : known)
      if (!is_finished(each.state)) open.push_back({.id = each.id});
    const auto last = static_cast<std::int64_t>(known.size()) - 1;
    std::vector<SqlCall> calls = {{&statements_.study_name, {study}},
                                  {&statements_.new_trials, {study, last}}};
    if (!open.empty())
      calls.push_back({&statements_.these_trials, {list_text(connection_->dialect(), open)}});
    const std::vector<SqlResult> found = connection_->run(calls);
    require_study(found[0], study);

    // The rows of trials come before their content: what is read as finished is then whole.
    std::vector<TrialRecord> trials;
    for (std::size_t i = found.size() - 1; i > 0; --i)
      for (std::size_t row = 0; row < found[i].num_rows(); ++row)
        trials.push_back(read_trial(found[i].row(row)));
    std::ranges::sort(trials, {}, &TrialRecord::id);
    read_content(trials);
    std::ranges::sort(trials, {}, &TrialRecord::number);

    for (TrialRecord& trial : trials) {
      const auto place = static_cast<std::size_t>(trial.number);
      if (trial.number >= 0 && place < known.size() && known[place].id == trial.id)
        known[place] = std::move(trial);
      else if (place == known.size())
        known.push_back(std::move(trial));
      else
        fail("study {} has a trial {} where {} was expected", study, trial.number, known.size());
    }
    return true;
  });
}

}  // namespace lathe::study
