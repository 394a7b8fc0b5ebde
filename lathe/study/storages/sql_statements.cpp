#include "lathe/study/storages/sql_statements.h"

#include <fmt/format.h>

#include "lathe/study/storages/trial_notes.h"

namespace lathe::study {
namespace {

SqlStatement set_attribute(std::string_view of, std::string_view kind) {
  return {
      fmt::format("INSERT INTO {0}_{1}_attributes ({0}_id, \"key\", value_json) "
                  "VALUES ($1, $2, $3) ON CONFLICT ({0}_id, \"key\") "
                  "DO UPDATE SET value_json = excluded.value_json",
                  of, kind)};
}

SqlStatement study_attributes(std::string_view kind) {
  return {
      fmt::format("SELECT \"key\", value_json FROM study_{}_attributes WHERE study_id = $1", kind)};
}

// Rows of a table that belong to the listed trials, in the order they were written.
SqlStatement of_trials(const SqlDialect& dialect, std::string_view columns, std::string_view table,
                       std::string_view key) {
  return {fmt::format("SELECT trial_id, {} FROM {} WHERE trial_id {} ORDER BY {}", columns, table,
                      dialect.any_of, key)};
}

SqlStatement delete_children(std::string_view table) {
  return {
      fmt::format("DELETE FROM {} WHERE trial_id IN "
                  "(SELECT trial_id FROM trials WHERE study_id = $1)",
                  table)};
}

SqlStatement delete_of_study(std::string_view table) {
  return {fmt::format("DELETE FROM {} WHERE study_id = $1", table)};
}

constexpr const char* kTrialColumns =
    "trial_id, study_id, number, state, datetime_start, datetime_complete";

// What SQLite must read word for word before it uses the index of unfinished trials.
constexpr const char* kUnfinished = "t.state IN ('RUNNING', 'WAITING')";

}  // namespace

SqlStatements::SqlStatements(const SqlDialect& dialect)
    : insert_study{"INSERT INTO studies (study_name) VALUES ($1) RETURNING study_id"},
      insert_direction{
          "INSERT INTO study_directions (study_id, objective, direction) "
          "VALUES ($1, $2, $3)"},
      find_study{"SELECT study_id FROM studies WHERE study_name = $1"},
      all_studies{"SELECT study_id FROM studies ORDER BY study_id"},
      study_name{"SELECT study_name FROM studies WHERE study_id = $1"},
      directions{"SELECT direction FROM study_directions WHERE study_id = $1 ORDER BY objective"},
      study_user_attributes{study_attributes("user")},
      study_system_attributes{study_attributes("system")},
      set_study_user{set_attribute("study", "user")},
      set_study_system{set_attribute("study", "system")},
      lock_study{"SELECT study_id FROM studies WHERE study_id = $1" + dialect.for_update},
      delete_study{{delete_children("trial_params"), delete_children("trial_values"),
                    delete_children("trial_intermediate_values"),
                    delete_children("trial_user_attributes"),
                    delete_children("trial_system_attributes"), delete_children("trial_heartbeats"),
                    delete_of_study("trials"), delete_of_study("study_user_attributes"),
                    delete_of_study("study_system_attributes"), delete_of_study("study_directions"),
                    delete_of_study("studies")}},
      // CROSS JOIN keeps SQLite from starting with the notes of every study.
      silent_trials{fmt::format(
          "SELECT t.trial_id, {} - CAST(h.value_json AS bigint) "
          "FROM trials t CROSS JOIN trial_system_attributes h "
          "WHERE t.study_id = $1 AND t.state = 'RUNNING' AND {} AND h.trial_id = t.trial_id "
          "AND h.\"key\" = '{}' ORDER BY t.number",
          dialect.now, kUnfinished, kHeartbeatKey)},
      silence{fmt::format("SELECT {} - CAST(value_json AS bigint) FROM trial_system_attributes "
                          "WHERE trial_id = $1 AND \"key\" = '{}'",
                          dialect.now, kHeartbeatKey)},
      waiting_trial{fmt::format(
          "SELECT t.trial_id FROM trials t WHERE t.study_id = $1 AND t.state = 'WAITING' AND {} "
          "AND NOT EXISTS (SELECT 1 FROM trial_system_attributes p WHERE p.trial_id = t.trial_id "
          "AND p.\"key\" = '{}' AND p.value_json = 'true') ORDER BY t.number LIMIT 1{}",
          kUnfinished, kPausedKey, dialect.skip_locked)},
      last_number{
          "SELECT number FROM trials WHERE study_id = $1 AND number IS NOT NULL "
          "ORDER BY number DESC LIMIT 1"},
      lock_trial{"SELECT study_id, state, datetime_complete FROM trials WHERE trial_id = $1" +
                 dialect.for_update},
      insert_trial{
          "INSERT INTO trials (study_id, number, state, datetime_start, "
          "datetime_complete) VALUES ($1, $2, $3, $4, $5) RETURNING trial_id"},
      start_trial{
          "UPDATE trials SET state = 'RUNNING', "
          "datetime_start = COALESCE(datetime_start, $2) WHERE trial_id = $1"},
      trial_note{
          "SELECT value_json FROM trial_system_attributes WHERE trial_id = $1 "
          "AND \"key\" = $2"},
      known_distribution{
          "SELECT p.distribution_json FROM trials t CROSS JOIN trial_params p "
          "WHERE t.study_id = $1 AND p.trial_id = t.trial_id "
          "AND p.param_name = $2 LIMIT 1"},
      set_parameter{
          "INSERT INTO trial_params (trial_id, param_name, param_value, "
          "distribution_json) VALUES ($1, $2, $3, $4) ON CONFLICT (trial_id, param_name) "
          "DO UPDATE SET param_value = excluded.param_value, "
          "distribution_json = excluded.distribution_json"},
      set_value{
          "INSERT INTO trial_values (trial_id, objective, value, value_type) "
          "VALUES ($1, $2, $3, $4) ON CONFLICT (trial_id, objective) "
          "DO UPDATE SET value = excluded.value, value_type = excluded.value_type"},
      add_intermediate{
          "INSERT INTO trial_intermediate_values (trial_id, step, "
          "intermediate_value, intermediate_value_type) VALUES ($1, $2, $3, $4) "
          "ON CONFLICT (trial_id, step) DO NOTHING"},
      set_user{set_attribute("trial", "user")},
      set_system{set_attribute("trial", "system")},
      set_state{"UPDATE trials SET state = $2 WHERE trial_id = $1"},
      finish_trial{"UPDATE trials SET state = $2, datetime_complete = $3 WHERE trial_id = $1"},
      set_heartbeat{
          fmt::format("INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) "
                      "VALUES ($1, '{}', CAST({} AS text)) ON CONFLICT (trial_id, \"key\") "
                      "DO UPDATE SET value_json = excluded.value_json",
                      kHeartbeatKey, dialect.now)},
      drop_heartbeat{
          fmt::format("DELETE FROM trial_system_attributes WHERE trial_id = $1 AND \"key\" = '{}'",
                      kHeartbeatKey)},
      new_trials{fmt::format("SELECT {} FROM trials WHERE study_id = $1 AND number > $2 "
                             "ORDER BY number",
                             kTrialColumns)},
      these_trials{fmt::format("SELECT {} FROM trials WHERE trial_id {} ORDER BY trial_id",
                               kTrialColumns, dialect.any_of)},
      parameters{of_trials(dialect, "param_name, param_value, distribution_json", "trial_params",
                           "param_id")},
      values{of_trials(dialect, "objective, value, value_type", "trial_values",
                       "trial_id, objective")},
      intermediate_values{of_trials(dialect, "step, intermediate_value, intermediate_value_type",
                                    "trial_intermediate_values", "trial_intermediate_value_id")},
      user_attributes{of_trials(dialect, "\"key\", value_json", "trial_user_attributes",
                                "trial_user_attribute_id")},
      system_attributes{of_trials(dialect, "\"key\", value_json", "trial_system_attributes",
                                  "trial_system_attribute_id")} {}

}  // namespace lathe::study
