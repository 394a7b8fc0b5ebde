#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lathe/core/error.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/study/storages/storage.h"
#include "lathe/study/testing/storage_places.h"

namespace lathe::study {
namespace {

const std::vector<Direction> kMinimize = {Direction::Minimize};

class Journal : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(file_, std::ios::app) << text; }
  std::string content() {
    std::stringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }

  StoragePlace place_ = *storage_place("journal");
  std::string url_ = place_.url;
  std::string file_ = url_.substr(std::string("journal:///").size());
};

TEST_F(Journal, ReadsTheLinesOfOptuna) {
  write(
      R"({"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [2]}
{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-01-01T10:00:00.000001"}
{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "x", "param_value_internal": 0.5, "distribution": "{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}"}
{"op_code": 7, "worker_id": "w", "trial_id": 0, "step": 3, "intermediate_value": NaN}
{"op_code": 8, "worker_id": "w", "trial_id": 0, "user_attr": {"note": [1, Infinity]}}
{"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 1, "values": [2.5], "datetime_complete": "2026-01-01T10:00:01.000001"}
{"op_code": 6, "worker_id": "late", "trial_id": 0, "state": 3, "values": null, "datetime_complete": "2026-01-01T10:00:02.000001"}
)");
  const auto storage = open_storage(url_);
  EXPECT_EQ(storage->study(0).directions, std::vector{Direction::Maximize});
  std::vector<TrialRecord> trials;
  storage->refresh(0, trials);
  ASSERT_EQ(trials.size(), 1);
  EXPECT_EQ(trials[0].state, TrialState::Complete) << "who comes too late is not heard";
  EXPECT_EQ(trials[0].values, std::vector<double>{2.5});
  EXPECT_EQ(trials[0].parameters.at(0).value, 0.5);
  EXPECT_EQ(trials[0].user_attributes.at("note"), "[1, Infinity]");
}

TEST_F(Journal, NamesTheLineThatIsWrong) {
  write("{\"op_code\": 0, \"worker_id\": \"w\", \"study_name\": \"s\", \"directions\": [1]}\n");
  const auto error_with = [&](const std::string& line) {
    const std::string before = content();
    write(line + "\n");
    const std::string error = error_text([&] { open_storage(url_); });
    std::ofstream(file_) << before;
    return error;
  };
  EXPECT_EQ(error_with("studies"), url_ + ": line 2: 1:1: invalid JSON: invalid literal");
  EXPECT_EQ(error_with("[]"), url_ + ": line 2: not an operation");
  EXPECT_EQ(error_with("{\"op_code\": 77}"), url_ + ": line 2: unknown operation 77");
  EXPECT_EQ(error_with("{\"op_code\": 4}"), url_ + ": line 2: \"study_id\" is missing");
  EXPECT_EQ(error_with("{\"op_code\": 4, \"study_id\": 0, \"state\": 9}"),
            url_ + ": line 2: \"state\" is 9, expected 0 to 4");
  EXPECT_EQ(error_with("{\"op_code\": 4, \"study_id\": 0, \"state\": \"x\"}"),
            url_ + ": line 2: \"state\" is not a whole number");
}

TEST_F(Journal, TakesAwayHalfALineThatAKilledWriterLeft) {
  const auto storage = open_storage(url_);
  const StudyId study = storage->create_study("s", kMinimize, {}, {});
  write("{\"op_code\": 4, \"study_id\": 0, \"datetime_st");
  EXPECT_EQ(storage->claim(study, {.owner = "a"})->number, 0);
  EXPECT_EQ(open_storage(url_)->claim(study, {.owner = "b"})->number, 1);
  EXPECT_EQ(content().find("datetime_st{"), std::string::npos);
}

TEST_F(Journal, LeavesNoLockBehind) {
  open_storage(url_)->create_study("s", kMinimize, {}, {});
  struct stat info {};
  EXPECT_NE(lstat((file_ + ".lock").c_str(), &info), 0);
}

TEST_F(Journal, SaysWhyAFileCannotBeOpened) {
  EXPECT_EQ(error_text([&] { open_storage(url_ + "/no/such/a.log"); }),
            url_ + "/no/such/a.log: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace lathe::study
