#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "lathe/core/error.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/study/storages/sql_statements.h"
#include "lathe/study/storages/sqlite_connection.h"
#include "lathe/study/storages/storage.h"
#include "lathe/study/testing/storage_places.h"

namespace lathe::study {
namespace {

using testing::HasSubstr;

const std::vector<Direction> kMinimize = {Direction::Minimize};

class SqliteFile : public testing::Test {
 protected:
  StoragePlace place_ = *storage_place("sqlite");
  std::string url_ = place_.url;
  std::string file_ = url_.substr(std::string("sqlite:///").size());
};

TEST_F(SqliteFile, SaysThatAFileIsNoDatabase) {
  std::ofstream(file_) << "number,value\n1,2\n" << std::string(200, 'x');
  EXPECT_EQ(error_text([&] { open_storage(url_); }), url_ + ": not an SQLite file");
}

TEST_F(SqliteFile, SaysThatAFileIsDamaged) {
  {
    const auto storage = open_storage(url_);
    const StudyId study = storage->create_study("s", kMinimize, {}, {});
    for (int i = 0; i < 50; ++i)
      storage->add_trial(study,
                         {.state = TrialState::Fail,
                          .user_attributes = {{"note", "\"" + std::string(500, 'n') + "\""}}});
  }
  std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(20 * 4096, '\xA5');
  file.close();
  const std::string error = error_text([&] {
    const auto storage = open_storage(url_);
    std::vector<TrialRecord> trials;
    storage->refresh(1, trials);
  });
  EXPECT_EQ(error.substr(0, error.find("damaged") + 7), url_ + ": the file is damaged");
}

TEST_F(SqliteFile, SaysWhyAFileCannotBeOpened) {
  EXPECT_EQ(error_text([&] { open_storage(url_ + "/no/such/studies.db"); }),
            url_ + "/no/such/studies.db: cannot be opened: No such file or directory");
  const std::string folder = url_.substr(0, url_.rfind('/'));
  EXPECT_EQ(error_text([&] { open_storage(folder); }),
            folder + ": cannot be opened: it is a folder");
  EXPECT_EQ(error_text([&] { open_storage("sqlite://studies.db"); }),
            "sqlite://studies.db: expected sqlite:///FILE");
}

TEST_F(SqliteFile, SaysWhichSchemaWasFoundAndWhichIsExpected) {
  open_storage(url_);
  connect_sqlite(file_)->execute("UPDATE alembic_version SET version_num = 'v9.0.0.a'");
  EXPECT_EQ(error_text([&] { open_storage(url_); }),
            url_ +
                ": schema revision \"v9.0.0.a\", expected v3.0.0.d or v3.2.0.a\n"
                "hint: optuna storage upgrade brings older tables up to date");
  connect_sqlite(file_)->execute("DROP TABLE alembic_version");
  EXPECT_EQ(error_text([&] { open_storage(url_); }),
            url_ + ": tables without a schema revision, expected v3.2.0.a");
}

TEST_F(SqliteFile, UsesTheTablesOfOptuna31AndLeavesThemTheirRevision) {
  open_storage(url_)->create_study("s", kMinimize, {}, {});
  {
    const auto connection = connect_sqlite(file_);
    connection->execute("UPDATE alembic_version SET version_num = 'v3.0.0.d'");
    for (const char* index :
         {"ix_trials_study_id", "lathe_trials_number", "lathe_trials_unfinished"})
      connection->execute(fmt::format("DROP INDEX {}", index));
  }
  EXPECT_EQ(open_storage(url_)->claim(1, {.owner = "a"})->number, 0);
  const auto connection = connect_sqlite(file_);
  EXPECT_EQ(connection->execute("SELECT version_num FROM alembic_version").row(0).text(0, ""),
            "v3.0.0.d");
  EXPECT_EQ(connection
                ->execute("SELECT count(*) FROM sqlite_master WHERE type = 'index' "
                          "AND tbl_name = 'trials'")
                .row(0)
                .whole(0, ""),
            3);
}

TEST_F(SqliteFile, NamesTheTrialAndTheColumnThatHoldNonsense) {
  const auto storage = open_storage(url_);
  const StudyId study = storage->create_study("s", kMinimize, {}, {});
  const auto choice = std::make_shared<const Distribution>(
      CategoricalDistribution{{std::int64_t{4}, std::int64_t{8}}});
  storage->add_trial(study, {.state = TrialState::Complete,
                             .values = {1},
                             .parameters = {{"bits", choice, 1}},
                             .start = now(),
                             .complete = now()});
  const auto spoil = [&](const std::string& statement) {
    const auto connection = connect_sqlite(file_);
    connection->begin(SqlConnection::Access::Write);
    connection->execute("CREATE TABLE IF NOT EXISTS backup AS SELECT * FROM trial_params");
    connection->execute(statement);
    connection->commit({});
    std::vector<TrialRecord> trials;
    const std::string error = error_text([&] { storage->refresh(study, trials); });
    connection->execute("UPDATE trials SET state = 'COMPLETE', number = 0, datetime_start = NULL");
    connection->execute("UPDATE trial_values SET value = 1, value_type = 'FINITE'");
    connection->execute("DELETE FROM trial_params");
    connection->execute("INSERT INTO trial_params SELECT * FROM backup");
    EXPECT_EQ(error.substr(0, url_.size() + 2), url_ + ": ");
    return error.substr(std::min(error.size(), url_.size() + 2));
  };
  EXPECT_EQ(spoil("UPDATE trial_params SET param_value = 'eight'"),
            "trial 0: trial_params.param_value holds a text, expected a number");
  EXPECT_EQ(spoil("UPDATE trial_params SET param_value = 7"),
            "trial 0: parameter \"bits\" is stored as 7, which is not one of its values");
  EXPECT_THAT(spoil("UPDATE trial_params SET distribution_json = '{\"name\": \"Cauchy\"}'"),
              HasSubstr("trial 0: parameter \"bits\": "));
  EXPECT_EQ(spoil("UPDATE trials SET state = 'DONE'"), "trial 0: trials.state is \"DONE\"");
  EXPECT_EQ(spoil("UPDATE trials SET number = 3"), "study 1 has a trial 3 where 0 was expected");
  EXPECT_EQ(spoil("UPDATE trials SET datetime_start = 'noon'"),
            "trial 0: not a time: \"noon\", expected YYYY-MM-DD HH:MM:SS");
  EXPECT_EQ(spoil("UPDATE trial_values SET value = NULL"),
            "trial 0: trial_values.value holds nothing, expected a number");
  EXPECT_EQ(spoil("UPDATE trial_values SET value_type = 'HUGE'"),
            "trial 0: trial_values.value has type \"HUGE\", expected FINITE, INF_POS, INF_NEG or "
            "NAN");
}

TEST_F(SqliteFile, HasAWriteAheadLogWhileItIsOpenAndNoneAfterwards) {
  {
    const auto storage = open_storage(url_);
    storage->create_study("s", kMinimize, {}, {});
    EXPECT_EQ(connect_sqlite(file_)->execute("PRAGMA journal_mode").row(0).text(0, ""), "wal");
    EXPECT_EQ(connect_sqlite(file_)->execute("PRAGMA synchronous").row(0).whole(0, ""), 2);
  }
  struct stat info {};
  EXPECT_NE(stat((file_ + "-wal").c_str(), &info), 0) << "the file alone holds everything";
}

TEST_F(SqliteFile, FindsTrialsToTakeWithoutReadingTheFinishedOnes) {
  open_storage(url_);
  const auto connection = connect_sqlite(file_);
  const SqlStatements statements(connection->dialect());
  const auto plan = [&](const SqlStatement& statement) {
    std::string text;
    const SqlResult rows = connection->execute("EXPLAIN QUERY PLAN " + statement.text);
    for (std::size_t i = 0; i < rows.num_rows(); ++i) text += rows.row(i).text(3, "") + "; ";
    return text;
  };
  EXPECT_THAT(plan(statements.silent_trials), HasSubstr("SEARCH t USING"));
  EXPECT_THAT(plan(statements.silent_trials), HasSubstr("lathe_trials_unfinished"));
  EXPECT_THAT(plan(statements.waiting_trial), HasSubstr("lathe_trials_unfinished"));
  EXPECT_THAT(plan(statements.last_number), HasSubstr("lathe_trials_number"));
  EXPECT_THAT(plan(statements.new_trials),
              HasSubstr("lathe_trials_number (study_id=? AND number>?)"));
}

TEST_F(SqliteFile, GivesATrialThatGoesBackItsParametersAsFixedOnes) {
  const auto storage = open_storage(url_);
  const StudyId study = storage->create_study("s", kMinimize, {}, {});
  storage->add_trial(study, {.state = TrialState::Waiting,
                             .system_attributes = {{"fixed_params", "{\"later\": 3}"}}});
  const TrialRecord trial = *storage->claim(study, {.owner = "a"});
  const auto choice = std::make_shared<const Distribution>(
      CategoricalDistribution{{std::monostate(), std::string("gelu")}});
  const auto range = std::make_shared<const Distribution>(FloatDistribution{});
  ASSERT_TRUE(storage->update(trial.id, "a", {.parameters = {{"act", choice, 0}}}));
  ASSERT_TRUE(storage->update(trial.id, "a",
                              {.parameters = {{"x", range, 0.25}}, .state = TrialState::Waiting}));
  const TrialRecord again = *storage->claim(study, {.owner = "b"});
  EXPECT_EQ(again.system_attributes.at("fixed_params"),
            "{\"act\": null, \"later\": 3, \"x\": 0.25}");
  EXPECT_EQ(again.parameters.size(), 2);
}

TEST_F(SqliteFile, LeavesTheTrialsOfPythonWorkersAlone) {
  const auto storage = open_storage(url_);
  const StudyId study = storage->create_study("s", kMinimize, {}, {});
  const TrialRecord theirs = storage->add_trial(study, {.state = TrialState::Running});
  connect_sqlite(file_)->execute(
      "INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES ($1, '2020-01-01 00:00:00')",
      {theirs.id});
  EXPECT_EQ(storage->claim(study, {.owner = "a", .lease = std::chrono::milliseconds(1)})->number, 1)
      << "it has a heartbeat from long ago, but Optuna decides what becomes of it";
}

}  // namespace
}  // namespace lathe::study
