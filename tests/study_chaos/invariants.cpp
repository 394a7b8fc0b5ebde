// What must hold after the chaos, as queries on the tables. Each counts what must not be.
#include <array>
#include <filesystem>
#include <fstream>

#include "chaos.h"
#include "lathe/core/error.h"
#include "lathe/study/storages/trial_notes.h"

namespace lathe::study {
namespace {

// $1 is the number of trials that were asked for.
constexpr std::array<Invariant, 12> kInvariants = {{
    {"trials missing or too many", "SELECT abs(count(*) - CAST($1 AS integer)) FROM trials"},
    {"numbers missing between 0 and the last",
     "SELECT CAST($1 AS integer) - count(DISTINCT number) FROM trials "
     "WHERE number >= 0 AND number < CAST($1 AS integer)"},
    {"trials without a result",
     "SELECT count(*) FROM trials WHERE CAST($1 AS integer) > 0 AND state <> 'COMPLETE'"},
    {"trials with more or fewer than one value",
     "SELECT count(*) FROM trials t WHERE CAST($1 AS integer) > 0 AND 1 <> "
     "(SELECT count(*) FROM trial_values v WHERE v.trial_id = t.trial_id)"},
    {"trials with more or fewer than one parameter",
     "SELECT count(*) FROM trials t WHERE CAST($1 AS integer) > 0 AND 1 <> "
     "(SELECT count(*) FROM trial_params p WHERE p.trial_id = t.trial_id)"},
    {"results of another point than the trial's",
     "SELECT count(*) FROM trial_values v JOIN trial_params p ON p.trial_id = v.trial_id "
     "WHERE CAST($1 AS integer) > 0 AND v.value <> 2 * p.param_value"},
    {"results written by others than the last owner",
     "SELECT count(*) FROM trials t "
     "LEFT JOIN trial_system_attributes o ON o.trial_id = t.trial_id AND o.\"key\" = 'lathe:owner' "
     "LEFT JOIN trial_user_attributes r ON r.trial_id = t.trial_id AND r.\"key\" = 'result_of' "
     "WHERE CAST($1 AS integer) > 0 AND (o.value_json IS NULL OR r.value_json IS NULL "
     "OR o.value_json <> r.value_json)"},
    {"trials with two accepted results",
     "SELECT count(*) FROM (SELECT number FROM chaos_log WHERE is_accepted = 1 "
     "AND CAST($1 AS integer) > 0 GROUP BY number HAVING count(*) > 1) twice"},
    {"accepted results that are not the stored ones",
     "SELECT count(*) FROM chaos_log l WHERE CAST($1 AS integer) > 0 AND l.is_accepted = 1 "
     "AND NOT EXISTS (SELECT 1 FROM trials t JOIN trial_values v ON v.trial_id = t.trial_id "
     "JOIN trial_system_attributes o ON o.trial_id = t.trial_id WHERE t.number = l.number "
     "AND o.\"key\" = 'lathe:owner' AND o.value_json = l.owner AND v.value = l.value)"},
    {"refused results that are stored",
     "SELECT count(*) FROM chaos_log l JOIN trials t ON t.number = l.number "
     "JOIN trial_system_attributes o ON o.trial_id = t.trial_id AND o.\"key\" = 'lathe:owner' "
     "WHERE CAST($1 AS integer) > 0 AND l.is_accepted = 0 AND o.value_json = l.owner"},
    {"leases of finished trials",
     "SELECT count(*) FROM trial_system_attributes WHERE CAST($1 AS integer) > 0 "
     "AND \"key\" = 'lathe:heartbeat'"},
    {"trials that were completed before they were started",
     "SELECT count(*) FROM trials WHERE CAST($1 AS integer) > 0 "
     "AND (datetime_complete IS NULL OR datetime_complete < datetime_start)"},
}};

void read_logs(SqlConnection& connection, const std::string& folder) {
  connection.begin(SqlConnection::Access::Write);
  connection.execute(
      "CREATE TABLE chaos_log (number INTEGER, owner TEXT, value DOUBLE PRECISION, "
      "is_accepted INTEGER)");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".log") continue;
    std::ifstream log(entry.path());
    std::int64_t number = 0;
    std::string owner;
    double value = 0;
    std::int64_t is_accepted = 0;
    while (log >> number >> owner >> value >> is_accepted)
      connection.execute("INSERT INTO chaos_log VALUES ($1, $2, $3, $4)",
                         {number, "\"" + owner + "\"", value, is_accepted});
  }
  connection.commit({});
}

std::int64_t count(SqlConnection& connection, const std::string& text,
                   const std::vector<SqlValue>& values = {}) {
  return connection.execute(text, values).row(0).whole(0, "count");
}

}  // namespace

void copy_to_tables(Storage& storage, const std::string& file) {
  const std::optional<StudyId> from = storage.find_study(kStudyName);
  if (!from) fail("the study is gone");
  const std::unique_ptr<Storage> tables = open_storage("sqlite:///" + file);
  const StudyId to = tables->create_study(kStudyName, storage.study(*from).directions, {}, {});
  std::vector<TrialRecord> trials;
  storage.refresh(*from, trials);
  for (TrialRecord& trial : trials) {
    // A log of operations cannot take the last heartbeat back.
    trial.system_attributes.erase(kHeartbeatKey);
    if (tables->add_trial(to, trial).number != trial.number)
      fail("trial {} is not in its place", trial.number);
  }
}

int check_invariants(SqlConnection& connection, const std::string& folder, int num_trials) {
  read_logs(connection, folder);
  int num_broken = 0;
  for (const Invariant& each : kInvariants) {
    const std::int64_t found =
        count(connection, each.count, {static_cast<std::int64_t>(num_trials)});
    fmt::print("{:>6}  {}\n", found, each.name);
    num_broken += found != 0 ? 1 : 0;
  }
  fmt::print("results accepted {}, refused {}; trials taken over {} times\n",
             count(connection, "SELECT count(*) FROM chaos_log WHERE is_accepted = 1"),
             count(connection, "SELECT count(*) FROM chaos_log WHERE is_accepted = 0"),
             count(connection,
                   "SELECT sum(CAST(value_json AS integer) - 1) FROM trial_system_attributes "
                   "WHERE \"key\" = 'lathe:attempt'"));
  return num_broken;
}

}  // namespace lathe::study
