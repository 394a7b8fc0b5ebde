// What every storage promises, run over all that are registered.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "lathe/core/registry.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/study/storages/storage.h"
#include "lathe/study/testing/storage_places.h"

namespace lathe::study {
namespace {

using std::chrono::milliseconds;

const std::vector<Direction> kMinimize = {Direction::Minimize};

Parameter parameter(const std::string& name, Distribution distribution, double value) {
  return {name, std::make_shared<const Distribution>(std::move(distribution)), value};
}

class EveryStorage : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    place_ = storage_place(GetParam());
    if (!place_) GTEST_SKIP() << GetParam() << ": nothing to connect to on this machine";
    storage_ = open_storage(place_->url);
    study_ = storage_->create_study("first", kMinimize, {}, {});
  }
  // The same studies seen by another process; memory has no other.
  Storage& other() {
    if (!place_->is_shared) return *storage_;
    if (!other_) other_ = open_storage(place_->url);
    return *other_;
  }
  std::vector<TrialRecord> trials() {
    std::vector<TrialRecord> result;
    other().refresh(study_, result);
    return result;
  }

  std::optional<StoragePlace> place_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Storage> other_;
  StudyId study_ = 0;
};

TEST_P(EveryStorage, KeepsStudiesByName) {
  storage_->create_study("second", {Direction::Maximize, Direction::Minimize},
                         {{"note", "\"caf\\u00e9\""}}, {{"lathe:seed", "18446744073709551615"}});
  EXPECT_NE(error_text([&] { other().create_study("second", kMinimize, {}, {}); }), "no error");

  const std::optional<StudyId> found = other().find_study("second");
  ASSERT_TRUE(found);
  const StudyRecord study = other().study(*found);
  EXPECT_EQ(study.id, *found);
  EXPECT_EQ(study.name, "second");
  EXPECT_EQ(study.directions, (std::vector{Direction::Maximize, Direction::Minimize}));
  EXPECT_EQ(study.user_attributes, (Attributes{{"note", "\"caf\\u00e9\""}}));
  EXPECT_EQ(study.system_attributes.at("lathe:seed"), "18446744073709551615");
  EXPECT_EQ(other().studies().size(), 2);
  EXPECT_FALSE(other().find_study("third"));
}

TEST_P(EveryStorage, ReplacesAttributesOfAStudyByKey) {
  storage_->set_study_attributes(study_, {{"a", "1"}}, {{"s", "[NaN]"}});
  storage_->set_study_attributes(study_, {{"a", "2"}, {"b", "3"}}, {});
  EXPECT_EQ(other().study(study_).user_attributes, (Attributes{{"a", "2"}, {"b", "3"}}));
  EXPECT_EQ(other().study(study_).system_attributes, (Attributes{{"s", "[NaN]"}}));
}

TEST_P(EveryStorage, DeletesAStudyWithItsTrials) {
  const StudyId gone = storage_->create_study("gone", kMinimize, {}, {});
  storage_->claim(gone, {.owner = "a"});
  storage_->delete_study(gone);
  EXPECT_FALSE(other().find_study("gone"));
  const StudyId again = storage_->create_study("gone", kMinimize, {}, {});
  std::vector<TrialRecord> left;
  storage_->refresh(again, left);
  EXPECT_TRUE(left.empty());
}

TEST_P(EveryStorage, NumbersTrialsFromZeroInEachStudy) {
  const StudyId second = storage_->create_study("second", kMinimize, {}, {});
  EXPECT_EQ(storage_->claim(study_, {.owner = "a"})->number, 0);
  EXPECT_EQ(other().claim(second, {.owner = "b"})->number, 0);
  EXPECT_EQ(other().claim(study_, {.owner = "b"})->number, 1);
  EXPECT_EQ(storage_->add_trial(study_, {.state = TrialState::Fail}).number, 2);
  EXPECT_EQ(storage_->claim(study_, {.owner = "a"})->number, 3);
  const std::vector<TrialRecord> all = trials();
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].number, static_cast<int>(i));
  EXPECT_EQ(all.size(), 4);
}

TEST_P(EveryStorage, KeepsEverythingThatIsWrittenToATrial) {
  const TrialRecord trial =
      *storage_->claim(study_, {.owner = "a", .system_attributes = {{"given", "true"}}});
  EXPECT_EQ(trial.state, TrialState::Running);
  EXPECT_TRUE(trial.start);
  const CategoricalDistribution act{{std::string("relu"), std::monostate{}, std::int64_t{8}}};
  ASSERT_TRUE(storage_->update(
      trial.id, "a",
      {.parameters = {parameter("z", FloatDistribution{.low = 1e-5, .high = 1, .log = true}, 0.1),
                      parameter("act", act, 1),
                      parameter("n", IntDistribution{.low = 2, .high = 8, .step = 2}, 6)},
       .intermediate_values = {{1, 0.5}, {2, NAN}, {3, INFINITY}, {4, -INFINITY}},
       .user_attributes = {{"note", "{\"a\": Infinity}"}},
       .system_attributes = {{"constraints", "[0.5, -1.0]"}}}));
  ASSERT_TRUE(storage_->update(trial.id, "a",
                               {.intermediate_values = {{1, 9.0}, {5, 0.1 + 0.2}},
                                .user_attributes = {{"note", "2"}},
                                .state = TrialState::Complete,
                                .values = {0.1}}));

  const TrialRecord stored = trials().at(0);
  EXPECT_EQ(stored.id, trial.id);
  EXPECT_EQ(stored.state, TrialState::Complete);
  EXPECT_EQ(stored.values, std::vector<double>{0.1});
  ASSERT_EQ(stored.parameters.size(), 3);
  EXPECT_EQ(stored.parameters[0].name, "z") << "the order of asking is kept";
  EXPECT_EQ(stored.parameters[0].value, 0.1);
  EXPECT_EQ(*stored.parameters[1].distribution, Distribution(act));
  EXPECT_EQ(stored.parameters[2].value, 6);
  ASSERT_EQ(stored.intermediate_values.size(), 5);
  EXPECT_EQ(stored.intermediate_values.at(1), 0.5) << "the first report of a step stays";
  EXPECT_TRUE(std::isnan(stored.intermediate_values.at(2)));
  EXPECT_EQ(stored.intermediate_values.at(3), INFINITY);
  EXPECT_EQ(stored.intermediate_values.at(4), -INFINITY);
  EXPECT_EQ(stored.intermediate_values.at(5), 0.1 + 0.2) << "to the last bit";
  EXPECT_EQ(stored.user_attributes, (Attributes{{"note", "2"}}));
  EXPECT_EQ(stored.system_attributes.at("constraints"), "[0.5, -1.0]");
  EXPECT_EQ(stored.system_attributes.at("given"), "true");
  EXPECT_TRUE(stored.start && stored.complete && *stored.start <= *stored.complete);
}

TEST_P(EveryStorage, KeepsInfiniteValuesOfTrialsFromElsewhere) {
  storage_->add_trial(study_, {.state = TrialState::Complete, .values = {INFINITY}});
  storage_->add_trial(study_, {.state = TrialState::Complete, .values = {-INFINITY}});
  EXPECT_EQ(trials()[0].values, std::vector<double>{INFINITY});
  EXPECT_EQ(trials()[1].values, std::vector<double>{-INFINITY});
}

TEST_P(EveryStorage, AddsAFinishedTrialWithAllItHas) {
  const Time start{std::chrono::microseconds(1'700'000'000'123'456)};
  storage_->add_trial(study_, {.state = TrialState::Pruned,
                               .values = {2},
                               .parameters = {parameter("x", FloatDistribution{}, 0.25)},
                               .intermediate_values = {{3, 2.0}},
                               .user_attributes = {{"u", "1"}},
                               .system_attributes = {{"s", "2"}},
                               .start = start,
                               .complete = start + std::chrono::seconds(5)});
  const TrialRecord stored = trials().at(0);
  EXPECT_EQ(stored.state, TrialState::Pruned);
  EXPECT_EQ(stored.values, std::vector<double>{2});
  EXPECT_EQ(stored.parameters.at(0).value, 0.25);
  EXPECT_EQ(stored.intermediate_values, (std::map<int, double>{{3, 2.0}}));
  EXPECT_EQ(stored.user_attributes.at("u"), "1");
  EXPECT_EQ(stored.system_attributes.at("s"), "2");
  EXPECT_EQ(stored.start, start);
  EXPECT_EQ(stored.complete, start + std::chrono::seconds(5));
}

TEST_P(EveryStorage, TakesWaitingTrialsInOrderBeforeNewOnesAndEachOnce) {
  storage_->add_trial(study_, {.state = TrialState::Waiting,
                               .system_attributes = {{"fixed_params", "{\"x\": 1}"}}});
  storage_->add_trial(study_, {.state = TrialState::Waiting});
  const TrialRecord first = *storage_->claim(study_, {.owner = "a"});
  EXPECT_EQ(first.number, 0);
  EXPECT_EQ(first.state, TrialState::Running);
  EXPECT_EQ(first.system_attributes.at("fixed_params"), "{\"x\": 1}");
  EXPECT_EQ(first.system_attributes.at("lathe:attempt"), "1");
  EXPECT_EQ(first.system_attributes.at("lathe:owner"), "\"a\"");
  EXPECT_EQ(other().claim(study_, {.owner = "b"})->number, 1);
  EXPECT_EQ(storage_->claim(study_, {.owner = "a"})->number, 2);
}

TEST_P(EveryStorage, StartsNoTrialBeyondTheLimitButTakesThoseThatWait) {
  storage_->add_trial(study_, {.state = TrialState::Waiting});
  EXPECT_EQ(storage_->claim(study_, {.owner = "a", .max_trials = 1})->number, 0);
  EXPECT_FALSE(other().claim(study_, {.owner = "a", .max_trials = 1}));
  EXPECT_TRUE(storage_->claim(study_, {.owner = "a", .max_trials = 2}));
  EXPECT_EQ(trials().size(), 2);
}

TEST_P(EveryStorage, RefusesWhoeverDoesNotOwnTheTrial) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a", .lease = milliseconds(60000)});
  const TrialChange result = {.state = TrialState::Complete, .values = {1}};
  EXPECT_FALSE(other().update(trial.id, "b", result));
  EXPECT_FALSE(other().update(trial.id, "", result)) << "nobody in particular is not the owner";
  EXPECT_FALSE(other().heartbeat(trial.id, "b"));
  EXPECT_EQ(trials()[0].state, TrialState::Running);
  EXPECT_TRUE(storage_->heartbeat(trial.id, "a"));
  EXPECT_TRUE(storage_->update(trial.id, "a", result));
  EXPECT_FALSE(storage_->update(trial.id, "a", {.state = TrialState::Complete, .values = {2}}));
  EXPECT_FALSE(storage_->heartbeat(trial.id, "a"));
  EXPECT_EQ(trials()[0].values, std::vector<double>{1});
}

TEST_P(EveryStorage, CanBeUsedFromAnotherThreadAtTheSameTime) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a", .lease = milliseconds(60000)});
  const std::unique_ptr<Storage> again = storage_->reopen();
  EXPECT_EQ(again != nullptr, place_->is_shared);
  std::thread([&] { EXPECT_TRUE((again ? *again : *storage_).heartbeat(trial.id, "a")); }).join();
  EXPECT_TRUE(storage_->heartbeat(trial.id, "a"));
}

TEST_P(EveryStorage, LetsAnyoneFinishATrialWithoutALease) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a"});
  EXPECT_FALSE(other().update(trial.id, "b", {.state = TrialState::Fail}));
  EXPECT_TRUE(other().update(trial.id, "", {.state = TrialState::Complete, .values = {1}}));
  const TrialRecord added = storage_->add_trial(study_, {.state = TrialState::Running});
  EXPECT_TRUE(storage_->update(added.id, "", {.state = TrialState::Fail}));
}

TEST_P(EveryStorage, GivesATrialWhoseLeaseRanOutToTheNextAndRefusesItsOldOwner) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a", .lease = milliseconds(1)});
  ASSERT_TRUE(storage_->update(trial.id, "a",
                               {.parameters = {parameter("x", FloatDistribution{}, 0.5)},
                                .intermediate_values = {{1, 3.0}},
                                .user_attributes = {{"checkpoint", "\"c\""}}}));
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(other().claim(study_, {.owner = "b"})->number, 1) << "without a lease none is taken";
  EXPECT_EQ(other().claim(study_, {.owner = "b", .lease = milliseconds(600000)})->number, 2);

  const TrialRecord taken = *other().claim(study_, {.owner = "b", .lease = milliseconds(1)});
  EXPECT_EQ(taken.id, trial.id);
  EXPECT_EQ(taken.number, 0);
  EXPECT_EQ(taken.state, TrialState::Running);
  EXPECT_EQ(taken.parameters.at(0).value, 0.5);
  EXPECT_EQ(taken.intermediate_values, (std::map<int, double>{{1, 3.0}}));
  EXPECT_EQ(taken.user_attributes.at("checkpoint"), "\"c\"");
  EXPECT_EQ(taken.system_attributes.at("lathe:attempt"), "2");
  EXPECT_EQ(taken.system_attributes.at("lathe:owner"), "\"b\"");

  EXPECT_FALSE(storage_->heartbeat(trial.id, "a"));
  EXPECT_FALSE(storage_->update(trial.id, "a", {.state = TrialState::Complete, .values = {1}}));
  EXPECT_TRUE(other().update(trial.id, "b", {.state = TrialState::Complete, .values = {2}}));
  EXPECT_EQ(trials()[0].values, std::vector<double>{2});
}

TEST_P(EveryStorage, LeavesATrialWithoutALeaseToItsOwner) {
  storage_->claim(study_, {.owner = "a"});
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(other().claim(study_, {.owner = "b", .lease = milliseconds(1)})->number, 1);
}

TEST_P(EveryStorage, TakesATrialBackAndGivesItToTheNext) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a", .lease = milliseconds(60000)});
  ASSERT_TRUE(storage_->update(trial.id, "a", {.state = TrialState::Waiting}));
  EXPECT_FALSE(storage_->update(trial.id, "a", {.state = TrialState::Fail}));
  const TrialRecord again = *other().claim(study_, {.owner = "b"});
  EXPECT_EQ(again.id, trial.id);
  EXPECT_EQ(again.system_attributes.at("lathe:attempt"), "2");
}

TEST_P(EveryStorage, KeepsAPausedTrialUntilItIsPromoted) {
  const TrialRecord trial = *storage_->claim(study_, {.owner = "a"});
  ASSERT_TRUE(storage_->update(
      trial.id, "a",
      {.system_attributes = {{"lathe:paused", "true"}}, .state = TrialState::Waiting}));
  EXPECT_EQ(other().claim(study_, {.owner = "b"})->number, 1);
  const TrialRecord promoted = *other().claim(study_, {.owner = "b", .promote = trial.id});
  EXPECT_EQ(promoted.id, trial.id);
  EXPECT_EQ(promoted.system_attributes.at("lathe:paused"), "false");
  EXPECT_EQ(storage_->claim(study_, {.owner = "a", .promote = trial.id})->number, 2)
      << "it was promoted already, so a new one is started";
}

TEST_P(EveryStorage, RefusesAParameterThatTheStudyKnowsAsSomethingElse) {
  const TrialRecord first = *storage_->claim(study_, {.owner = "a"});
  ASSERT_TRUE(
      storage_->update(first.id, "a", {.parameters = {parameter("x", FloatDistribution{}, 0.5)}}));
  const TrialRecord second = *other().claim(study_, {.owner = "b"});
  EXPECT_NE(
      error_text([&] {
        other().update(second.id, "b",
                       {.parameters = {parameter("y", FloatDistribution{}, 0.5),
                                       parameter("x", IntDistribution{}, 1)}});
      })
          .find("parameter \"x\": the study knows it as float from 0 to 1, asked for int from "
                "0 to 1"),
      std::string::npos);
  EXPECT_TRUE(trials()[1].parameters.empty()) << "all or nothing";
  EXPECT_TRUE(other().update(second.id, "b",
                             {.parameters = {parameter("x", FloatDistribution{.high = 2}, 2)}}))
      << "another range is allowed";
}

TEST_P(EveryStorage, ReadsFinishedTrialsOnce) {
  const TrialRecord running = *storage_->claim(study_, {.owner = "a"});
  const TrialRecord complete = *storage_->claim(study_, {.owner = "a"});
  ASSERT_TRUE(storage_->update(complete.id, "a", {.state = TrialState::Complete, .values = {1}}));
  std::vector<TrialRecord> known;
  other().refresh(study_, known);
  ASSERT_EQ(known.size(), 2);
  known[1].user_attributes["mark"] = "1";  // would be lost if it were read again
  ASSERT_TRUE(storage_->update(running.id, "a", {.state = TrialState::Complete, .values = {2}}));
  storage_->add_trial(study_, {.state = TrialState::Waiting});
  other().refresh(study_, known);
  ASSERT_EQ(known.size(), 3);
  EXPECT_EQ(known[0].values, std::vector<double>{2});
  EXPECT_EQ(known[1].user_attributes, (Attributes{{"mark", "1"}}));
  EXPECT_EQ(known[2].state, TrialState::Waiting);
  known[2].user_attributes["mark"] = "1";
  other().refresh(study_, known);
  EXPECT_EQ(known[2].user_attributes, Attributes()) << "an unfinished one may have changed";
}

TEST_P(EveryStorage, GivesEachTrialToOneOfManyWorkers) {
  constexpr int kWorkers = 4;
  constexpr int kTrials = 40;
  for (int i = 0; i < kTrials / 2; ++i) storage_->add_trial(study_, {.state = TrialState::Waiting});
  std::vector<std::vector<int>> taken(kWorkers);
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker)
    workers.emplace_back([&, worker] {
      const std::unique_ptr<Storage> own = place_->is_shared ? open_storage(place_->url) : nullptr;
      Storage& storage = own ? *own : *storage_;
      const Owner owner = std::to_string(worker);
      while (const auto trial = storage.claim(study_, {.owner = owner, .max_trials = kTrials})) {
        taken[static_cast<std::size_t>(worker)].push_back(trial->number);
        if (!storage.update(trial->id, owner, {.state = TrialState::Complete, .values = {1}}))
          taken[static_cast<std::size_t>(worker)].push_back(-1);
      }
    });
  for (std::thread& worker : workers) worker.join();
  std::vector<int> all;
  for (const std::vector<int>& each : taken) all.insert(all.end(), each.begin(), each.end());
  std::ranges::sort(all);
  std::vector<int> expected(kTrials);
  for (int i = 0; i < kTrials; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(all, expected);
  EXPECT_EQ(trials().size(), kTrials);
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryStorage,
                         testing::ValuesIn(Registry<StorageKind>::instance().names()),
                         [](const auto& each) { return each.param; });

TEST(OpenStorage, ChoosesBySchemeOrEnding) {
  EXPECT_EQ(open_storage("memory:")->description(), "memory");
  EXPECT_EQ(error_text([] { open_storage("studies.txt"); }),
            "studies.txt: expected a URL such as sqlite:///studies.db, or a path ending in .db, "
            ".sqlite or .log");
  EXPECT_NE(error_text([] { open_storage("memroy:"); }).find("unknown storage \"memroy\""),
            std::string::npos);
  EXPECT_EQ(error_text([] { open_storage(""); }).substr(0, 18), "empty storage name");
}

TEST(Owner, IsNeverTheSameTwice) {
  EXPECT_NE(new_owner(), new_owner());
}

}  // namespace
}  // namespace lathe::study
