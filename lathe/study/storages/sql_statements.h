#pragma once

#include <array>

#include "lathe/study/storages/sql_connection.h"

namespace lathe::study {

/// Every statement of a SqlStorage, written once for both databases.
///
/// The comment behind a statement names its values, then the columns that it gives.
struct SqlStatements {
  explicit SqlStatements(const SqlDialect& dialect);

  // Studies.
  SqlStatement insert_study;                  // name -> study_id
  SqlStatement insert_direction;              // study, objective, direction
  SqlStatement find_study;                    // name -> study_id
  SqlStatement all_studies;                   // -> study_id
  SqlStatement study_name;                    // study -> study_name
  SqlStatement directions;                    // study -> direction
  SqlStatement study_user_attributes;         // study -> key, value_json
  SqlStatement study_system_attributes;       // study -> key, value_json
  SqlStatement set_study_user;                // study, key, value_json
  SqlStatement set_study_system;              // study, key, value_json
  SqlStatement lock_study;                    // study -> study_id
  std::array<SqlStatement, 11> delete_study;  // study, children first

  // Taking a trial.
  SqlStatement silent_trials;  // study -> trial_id, milliseconds; the quiet ones that have owners
  SqlStatement silence;        // trial -> milliseconds
  SqlStatement waiting_trial;  // study -> trial_id; not a paused one
  SqlStatement last_number;    // study -> number
  SqlStatement lock_trial;     // trial -> study_id, state, datetime_complete
  SqlStatement insert_trial;   // study, number, state, start, complete -> trial_id
  SqlStatement start_trial;    // trial, start; which stays if there is one

  // Writing to a trial.
  SqlStatement trial_note;          // trial, key -> value_json; one system attribute
  SqlStatement known_distribution;  // study, name -> distribution_json
  SqlStatement set_parameter;       // trial, name, value, distribution_json
  SqlStatement set_value;           // trial, objective, value, value_type
  SqlStatement add_intermediate;    // trial, step, value, value_type; the first stays
  SqlStatement set_user;            // trial, key, value_json
  SqlStatement set_system;          // trial, key, value_json
  SqlStatement set_state;           // trial, state
  SqlStatement finish_trial;        // trial, state, complete
  SqlStatement set_heartbeat;       // trial
  SqlStatement drop_heartbeat;      // trial

  // Reading. The list of trials is one text.
  SqlStatement new_trials;           // study, last known number -> the columns of a trial
  SqlStatement these_trials;         // list -> the columns of a trial
  SqlStatement parameters;           // list -> trial_id, param_name, param_value, distribution_json
  SqlStatement values;               // list -> trial_id, objective, value, value_type
  SqlStatement intermediate_values;  // list -> trial_id, step, value, type
  SqlStatement user_attributes;      // list -> trial_id, key, value_json
  SqlStatement system_attributes;    // list -> trial_id, key, value_json
};

}  // namespace lathe::study
