#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/study/storages/memory_storage.h"
#include "lathe/study/study.h"

namespace lathe::study {
namespace {

using testing::HasSubstr;

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

// Asks in one study and reports in another, as two processes do.
class ReportByNumber : public testing::Test {
 protected:
  std::shared_ptr<Storage> storage = std::make_shared<MemoryStorage>();
  Study asking = Study::create(storage, "s", {Direction::Minimize},
                               {.sampler = "random", .pruner = "threshold:upper=5"});
  Study reporting = Study::open(storage, "s");
};

TEST_F(ReportByNumber, StoresTheValueAndGivesTheVerdict) {
  asking.ask();
  EXPECT_EQ(reporting.report(0, 1, {4}), Verdict::Continue);
  EXPECT_EQ(reporting.report(0, 2, {6}), Verdict::Prune);
  const std::map<int, double> expected = {{1, 4}, {2, 6}};
  EXPECT_EQ(asking.history().trials()[0].intermediate_values, expected);
}

TEST_F(ReportByNumber, KeepsTheFirstValueOfAStep) {
  asking.ask();
  reporting.report(0, 1, {4});
  reporting.report(0, 1, {3});
  EXPECT_EQ(asking.history().trials()[0].intermediate_values.at(1), 4);
}

TEST_F(ReportByNumber, RefusesTrialsThatAreFinishedOrNotThere) {
  asking.ask();
  reporting.tell(0, {.values = {1}});
  EXPECT_THAT(error_of([&] { reporting.report(0, 1, {4}); }),
              HasSubstr("trial 0 is COMPLETE, expected RUNNING"));
  EXPECT_THAT(error_of([&] { reporting.report(7, 1, {4}); }), HasSubstr("there is no trial 7"));
}

TEST_F(ReportByNumber, WantsAValueForEachObjective) {
  asking.ask();
  EXPECT_THAT(error_of([&] {
                reporting.report(0, 1, {4, 5});
              }),
              HasSubstr("trial 0 reports 2 values, expected 1"));
}

TEST_F(ReportByNumber, RefusesWhoDoesNotOwnALeasedTrial) {
  Study leasing = Study::open(storage, "s", {.lease = std::chrono::hours(1)});
  const std::optional<Trial> trial = leasing.ask();
  EXPECT_THAT(error_of([&] { reporting.report(0, 1, {4}); }),
              HasSubstr("trial 0 belongs to another worker"));
  EXPECT_EQ(reporting.report(0, 1, {4}, trial->owner()), Verdict::Continue);
}

}  // namespace
}  // namespace lathe::study
