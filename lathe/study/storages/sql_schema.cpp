#include "lathe/study/storages/sql_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

constexpr std::array<std::string_view, 2> kKnownRevisions = {"v3.0.0.d", kSchemaRevision};

struct Index {
  const char* name;
  const char* definition;
};

// The first is Optuna's own. The others are ours: the number of the next trial and the trials that
// somebody could take are found without reading the finished ones. Python does not mind them.
constexpr std::array<Index, 3> kIndexes = {{
    {"ix_trials_study_id", "trials (study_id)"},
    {"lathe_trials_number", "trials (study_id, number)"},
    {"lathe_trials_unfinished",
     "trials (study_id, state, number) WHERE state IN ('RUNNING', 'WAITING')"},
}};

std::string attributes_table(const SqlDialect& dialect, std::string_view of,
                             std::string_view kind) {
  return fmt::format(
      "CREATE TABLE {0}_{1}_attributes ({0}_{1}_attribute_id {2}, {0}_id INTEGER, "
      "\"key\" VARCHAR(512), value_json TEXT, UNIQUE ({0}_id, \"key\"), "
      "FOREIGN KEY ({0}_id) REFERENCES {3} ({0}_id))",
      of, kind, dialect.key, of == "study" ? "studies" : "trials");
}

std::vector<std::string> tables(const SqlDialect& dialect) {
  const std::string of_trial = "FOREIGN KEY (trial_id) REFERENCES trials (trial_id)";
  const std::string of_study = "FOREIGN KEY (study_id) REFERENCES studies (study_id)";
  return {
      fmt::format("CREATE TABLE studies (study_id {}, study_name VARCHAR(512) NOT NULL)",
                  dialect.key),
      "CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name)",
      fmt::format("CREATE TABLE study_directions (study_direction_id {}, direction {} NOT NULL, "
                  "study_id INTEGER NOT NULL, objective INTEGER NOT NULL, "
                  "UNIQUE (study_id, objective), {})",
                  dialect.key, dialect.direction, of_study),
      attributes_table(dialect, "study", "user"),
      attributes_table(dialect, "study", "system"),
      fmt::format("CREATE TABLE trials (trial_id {}, number INTEGER, study_id INTEGER, "
                  "state {} NOT NULL, datetime_start {}, datetime_complete {}, {})",
                  dialect.key, dialect.state, dialect.time, dialect.time, of_study),
      attributes_table(dialect, "trial", "user"),
      attributes_table(dialect, "trial", "system"),
      fmt::format("CREATE TABLE trial_params (param_id {}, trial_id INTEGER, "
                  "param_name VARCHAR(512), param_value {}, distribution_json TEXT, "
                  "UNIQUE (trial_id, param_name), {})",
                  dialect.key, dialect.real, of_trial),
      fmt::format("CREATE TABLE trial_values (trial_value_id {}, trial_id INTEGER NOT NULL, "
                  "objective INTEGER NOT NULL, value {}, value_type {} NOT NULL, "
                  "UNIQUE (trial_id, objective), {})",
                  dialect.key, dialect.real, dialect.value_type, of_trial),
      fmt::format("CREATE TABLE trial_intermediate_values (trial_intermediate_value_id {}, "
                  "trial_id INTEGER NOT NULL, step INTEGER NOT NULL, intermediate_value {}, "
                  "intermediate_value_type {} NOT NULL, UNIQUE (trial_id, step), {})",
                  dialect.key, dialect.real, dialect.intermediate_value_type, of_trial),
      fmt::format("CREATE TABLE trial_heartbeats (trial_heartbeat_id {}, "
                  "trial_id INTEGER NOT NULL, heartbeat {} NOT NULL, UNIQUE (trial_id), {})",
                  dialect.key, dialect.time, of_trial),
      "CREATE TABLE version_info (version_info_id INTEGER NOT NULL PRIMARY KEY, "
      "schema_version INTEGER, library_version VARCHAR(256), CHECK (version_info_id = 1))",
      "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
      "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
      "INSERT INTO version_info VALUES (1, 12, 'lathe')",
      fmt::format("INSERT INTO alembic_version VALUES ('{}')", kSchemaRevision),
  };
}

bool has(SqlConnection& connection, const std::string& count, const char* name) {
  return connection.execute(count, {std::string(name)}).row(0).whole(0, "count") > 0;
}

bool has_table(SqlConnection& connection, const char* name) {
  return has(connection, connection.dialect().num_tables, name);
}

// True when the tables are there; fails when they are not those we know.
bool check_revision(SqlConnection& connection) {
  if (!has_table(connection, "alembic_version")) {
    if (has_table(connection, "version_info") || has_table(connection, "trials"))
      fail("tables without a schema revision, expected {}", kSchemaRevision);
    return false;
  }
  const SqlResult found = connection.execute("SELECT version_num FROM alembic_version");
  const std::string revision =
      found.num_rows() == 1 ? found.row(0).text(0, "alembic_version.version_num") : "";
  if (std::ranges::find(kKnownRevisions, revision) == kKnownRevisions.end())
    throw UserError(fmt::format("schema revision \"{}\", expected {}", revision,
                                fmt::join(kKnownRevisions, " or ")),
                    "optuna storage upgrade brings older tables up to date");
  return true;
}

bool has_indexes(SqlConnection& connection) {
  return std::ranges::all_of(kIndexes, [&](const Index& index) {
    return has(connection, connection.dialect().num_indexes, index.name);
  });
}

void create_indexes(SqlConnection& connection) {
  for (const Index& index : kIndexes)
    connection.execute(
        fmt::format("CREATE INDEX IF NOT EXISTS {} ON {}", index.name, index.definition));
}

void create_tables(SqlConnection& connection) {
  connection.begin(SqlConnection::Access::Write);
  for (const std::string& statement : connection.dialect().preparation)
    connection.execute(statement);
  // Somebody else may have been faster.
  if (!check_revision(connection)) {
    for (const std::string& statement : tables(connection.dialect())) connection.execute(statement);
    create_indexes(connection);
  }
  connection.commit({});
}

}  // namespace

void prepare_schema(SqlConnection& connection) {
  connection.begin(SqlConnection::Access::Read);
  const bool is_there = check_revision(connection);
  const bool is_indexed = is_there && has_indexes(connection);
  connection.commit({});
  if (is_indexed) return;
  if (!is_there) return create_tables(connection);
  try {
    connection.begin(SqlConnection::Access::Write);
    create_indexes(connection);
    connection.commit({});
  } catch (const UserError&) {
    // Not ours to change (a file we may only read, another's tables): slower, but it works.
    connection.rollback();
  }
}

}  // namespace lathe::study
