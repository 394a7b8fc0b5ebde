#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "lathe/core/error.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/study/storages/postgresql_connection.h"
#include "lathe/study/storages/storage.h"
#include "lathe/study/testing/cutting_proxy.h"
#include "lathe/study/testing/postgresql_server.h"

namespace lathe::study {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<Direction> kMinimize = {Direction::Minimize};

TEST(PostgresqlStorage, SaysWhereNobodyAnswersAndHidesThePassword) {
  const std::string error =
      error_text([] { open_storage("postgresql://ann:secret@localhost:1/studies"); });
  EXPECT_THAT(error, HasSubstr("postgresql://ann@localhost:1/studies: connection to server at "
                               "\"localhost\""));
  EXPECT_THAT(error, HasSubstr("Connection refused"));
  EXPECT_THAT(error, Not(HasSubstr("secret")));
  EXPECT_THAT(error, Not(HasSubstr("\n")));
}

TEST(PostgresqlStorage, RefusesAUrlWithoutShowingIt) {
  EXPECT_EQ(error_text([] { open_storage("postgresql://ann:sec%ret@host/base"); }),
            "not a PostgreSQL URL, expected postgresql://USER@HOST:PORT/DATABASE");
}

class OnAServer : public testing::Test {
 protected:
  void SetUp() override {
    server_ = PostgresqlServer::shared();
    if (server_ == nullptr) GTEST_SKIP() << "PostgreSQL is not installed";
  }
  PostgresqlServer* server_ = nullptr;
};

TEST_F(OnAServer, SaysThatThereIsNoSuchDatabase) {
  EXPECT_THAT(error_text([&] { open_storage(server_->url("nowhere")); }),
              HasSubstr("database \"nowhere\" does not exist"));
}

TEST_F(OnAServer, SaysWhichSchemaWasFoundAndWhichIsExpected) {
  const std::string url = server_->new_schema();
  open_storage(url);
  connect_postgresql(url)->execute("UPDATE alembic_version SET version_num = 'v2.6.0.a'");
  EXPECT_THAT(error_text([&] { open_storage(url); }),
              HasSubstr(": schema revision \"v2.6.0.a\", expected v3.0.0.d or v3.2.0.a"));
}

TEST_F(OnAServer, RefusesATextThatTheServerCannotHold) {
  const auto storage = open_storage(server_->new_schema());
  EXPECT_THAT(error_text([&] { storage->create_study(std::string("a\0b", 3), kMinimize, {}, {}); }),
              HasSubstr("a text with a zero byte cannot be stored: \"a...\""));
  EXPECT_THAT(error_text([&] { storage->create_study("\xFF", kMinimize, {}, {}); }),
              HasSubstr("invalid byte sequence for encoding \"UTF8\""));
  EXPECT_EQ(storage->studies().size(), 0) << "and works on";
}

// What libpq is told by the environment, for as long as this lives.
class SessionTimeZone {
 public:
  explicit SessionTimeZone(const char* zone) { setenv("PGTZ", zone, 1); }
  ~SessionTimeZone() { unsetenv("PGTZ"); }
  SessionTimeZone(const SessionTimeZone&) = delete;
  SessionTimeZone& operator=(const SessionTimeZone&) = delete;
};

// A change to daylight-saving time is the same: two moments in two zones.
TEST_F(OnAServer, MeasuresSilenceAlikeInEveryTimeZone) {
  using std::chrono::milliseconds;
  const std::string url = server_->new_schema();
  const auto open_in = [&](const char* zone) {
    const SessionTimeZone session(zone);
    return open_storage(url);
  };
  const auto west = open_in("America/Los_Angeles");
  const auto east = open_in("Asia/Tokyo");
  const StudyId study = west->create_study("s", kMinimize, {}, {});
  const Claim claim = {.owner = "a", .lease = milliseconds(600'000)};
  ASSERT_EQ(west->claim(study, claim)->number, 0);
  EXPECT_EQ(east->claim(study, claim)->number, 1) << "the first is not 16 hours old";
  EXPECT_EQ(west->claim(study, claim)->number, 2);

  const StudyId silent = west->create_study("silent", kMinimize, {}, {});
  ASSERT_EQ(east->claim(silent, claim)->number, 0);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(west->claim(silent, {.owner = "b", .lease = milliseconds(1)})->number, 0)
      << "nor does it come from the future";
}

TEST_F(OnAServer, WorksInUtcWhateverTheServersDefaultIs) {
  const std::string url = server_->new_database();
  connect_postgresql(url)->execute(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), "
      "'Europe/Berlin'); END $$");
  EXPECT_EQ(connect_postgresql(url)->execute("SHOW timezone").row(0).text(0, "timezone"), "UTC");
}

// A connection that breaks when a transaction is committed, before or after the server did it.
class LostCommit : public testing::TestWithParam<CuttingProxy::Cut> {
 protected:
  static void SetUpTestSuite() {
    if (PostgresqlServer* server = PostgresqlServer::shared()) {
      url_ = server->new_schema();
      direct_ = open_storage(url_);
    }
  }
  static void TearDownTestSuite() { direct_.reset(); }
  void SetUp() override {
    if (!direct_) GTEST_SKIP() << "PostgreSQL is not installed";
    const std::filesystem::path folder = PostgresqlServer::shared()->folder();
    proxy_ = std::make_unique<CuttingProxy>(folder);
    std::string url = url_;
    url.replace(url.find(folder.string()), folder.string().size(), proxy_->folder().string());
    storage_ = open_storage(url);
    name_ = testing::UnitTest::GetInstance()->current_test_info()->name();
    study_ = storage_->create_study(name_, kMinimize, {}, {});
  }
  void TearDown() override {
    if (!proxy_) return;
    EXPECT_FALSE(proxy_->is_armed()) << "the connection was not cut";
    storage_.reset();
  }
  void cut() { proxy_->arm(GetParam()); }
  std::vector<TrialRecord> trials() {
    std::vector<TrialRecord> result;
    direct_->refresh(study_, result);
    return result;
  }

  static inline std::string url_;
  static inline std::unique_ptr<Storage> direct_;
  std::unique_ptr<CuttingProxy> proxy_;
  std::unique_ptr<Storage> storage_;
  std::string name_;
  StudyId study_ = 0;
};

TEST_P(LostCommit, CreatesAStudyOnce) {
  const std::size_t num_studies = direct_->studies().size();
  cut();
  const StudyId second = storage_->create_study(name_ + "2", kMinimize, {{"a", "1"}}, {});
  EXPECT_EQ(direct_->find_study(name_ + "2"), second);
  EXPECT_EQ(direct_->studies().size(), num_studies + 1);
}

TEST_P(LostCommit, DeletesAStudy) {
  cut();
  storage_->delete_study(study_);
  EXPECT_FALSE(direct_->find_study(name_));
}

TEST_P(LostCommit, ClaimsANewTrialOnce) {
  cut();
  const auto trial = storage_->claim(study_, {.owner = "a", .max_trials = 1});
  ASSERT_TRUE(trial) << "the limit does not count our own trial against us";
  EXPECT_EQ(trial->number, 0);
  EXPECT_EQ(trial->system_attributes.at("lathe:attempt"), "1");
  EXPECT_EQ(trials().size(), 1);
}

TEST_P(LostCommit, ClaimsAWaitingTrialOnce) {
  direct_->add_trial(study_, {.state = TrialState::Waiting});
  direct_->add_trial(study_, {.state = TrialState::Waiting});
  cut();
  const auto trial = storage_->claim(study_, {.owner = "a"});
  EXPECT_EQ(trial->number, 0);
  EXPECT_EQ(trial->system_attributes.at("lathe:attempt"), "1");
  EXPECT_EQ(trials()[1].state, TrialState::Waiting);
}

TEST_P(LostCommit, AddsATrialOnce) {
  cut();
  EXPECT_EQ(storage_->add_trial(study_, {.state = TrialState::Complete, .values = {3}}).number, 0);
  ASSERT_EQ(trials().size(), 1);
  EXPECT_EQ(trials()[0].values, std::vector<double>{3});
}

TEST_P(LostCommit, AcceptsAResultAndSaysSo) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a"});
  cut();
  EXPECT_TRUE(storage_->update(trial.id, "a", {.state = TrialState::Complete, .values = {1}}));
  EXPECT_EQ(trials()[0].values, std::vector<double>{1});
  EXPECT_FALSE(storage_->update(trial.id, "a", {.state = TrialState::Complete, .values = {2}}));
}

TEST_P(LostCommit, KeepsAReport) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a"});
  cut();
  EXPECT_TRUE(storage_->update(trial.id, "a", {.intermediate_values = {{1, 0.5}}}));
  EXPECT_EQ(trials()[0].intermediate_values.at(1), 0.5);
}

TEST_P(LostCommit, HandsATrialBackAndSaysSo) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a"});
  cut();
  EXPECT_TRUE(storage_->update(trial.id, "a", {.state = TrialState::Waiting}));
  EXPECT_EQ(trials()[0].state, TrialState::Waiting);
}

TEST_P(LostCommit, RenewsALease) {
  const TrialRecord trial =
      *storage_->claim(study_, {.owner = "a", .lease = std::chrono::milliseconds(60000)});
  cut();
  EXPECT_TRUE(storage_->heartbeat(trial.id, "a"));
}

INSTANTIATE_TEST_SUITE_P(AroundIt, LostCommit,
                         testing::Values(CuttingProxy::Cut::Request, CuttingProxy::Cut::Answer),
                         [](const auto& each) {
                           return each.param == CuttingProxy::Cut::Request ? "BeforeIt" : "AfterIt";
                         });

}  // namespace
}  // namespace lathe::study
