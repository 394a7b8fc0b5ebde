#include "lathe/study/study.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/core/testing/error_text.h"
#include "lathe/study/objective_names.h"
#include "lathe/study/storages/memory_storage.h"
#include "lathe/study/testing/small_study.h"

namespace lathe::study {
namespace {

std::vector<std::string> names(const TrialRecord& trial) {
  std::vector<std::string> result;
  for (const Parameter& each : trial.parameters) result.push_back(each.name);
  return result;
}

std::string points(const History& history) {
  std::string text;
  for (const TrialRecord& trial : history.trials()) {
    for (const Parameter& each : trial.parameters)
      text += each.name + "=" + to_json(to_external(*each.distribution, each.value)) + " ";
    text += "\n";
  }
  return text;
}

TEST(Study, FindsTheBestOfWhatItTried) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "parabola", kMinimize,
                              {.sampler = "random", .seed = 1});
  double best = std::numeric_limits<double>::infinity();
  const auto parabola = [&](Trial& trial) {
    const double x = trial.suggest_float("x", -5, 5);
    best = std::min(best, x * x);
    return complete(x * x);
  };
  study.optimize(parabola, {.trials = 30});

  EXPECT_EQ(study.history().finished().size(), 30);
  ASSERT_TRUE(study.best());
  EXPECT_EQ(study.best()->values, std::vector<double>{best});
}

TEST(Study, StoresTheParametersOfADeclaredSpaceWhenItAsks) {
  auto storage = std::make_shared<MemoryStorage>();
  Study study = Study::create(storage, "s", kMinimize,
                              {.sampler = "random", .seed = 1, .space = small_space()});
  bool has_int = false;
  bool has_fixed = false;
  for (int i = 0; i < 20; ++i) {
    std::optional<Trial> trial = study.ask();
    ASSERT_TRUE(trial);
    std::vector<TrialRecord> stored;
    storage->refresh(study.record().id, stored);
    const bool is_int = stored.back().find("layer")->value == 0;
    EXPECT_EQ(names(stored.back()), is_int ? std::vector<std::string>({"layer", "width", "lr"})
                                           : std::vector<std::string>({"layer", "lr"}));
    (is_int ? has_int : has_fixed) = true;
    EXPECT_TRUE(study.tell(*trial, complete(1)));
  }
  EXPECT_TRUE(has_int && has_fixed);
}

TEST(Study, ContinuesInAnotherProcessWithWhatItKeeps) {
  auto together = std::make_shared<MemoryStorage>();
  auto apart = std::make_shared<MemoryStorage>();
  const StudyOptions options = {.sampler = "random", .seed = 7, .space = small_space()};
  Study whole = Study::create(together, "s", kMinimize, options);
  Study::create(apart, "s", kMinimize, options);
  for (int i = 0; i < 10; ++i) {
    std::optional<Trial> one = whole.ask();
    ASSERT_TRUE(whole.tell(*one, complete(i)));
    Study reopened = Study::open(apart, "s");
    std::optional<Trial> other = reopened.ask();
    ASSERT_TRUE(reopened.tell(*other, complete(i)));
  }
  EXPECT_EQ(points(Study::open(apart, "s").history()), points(whole.history()));
  EXPECT_EQ(Study::open(apart, "s").seed(), 7);
}

TEST(Study, GivesTheSameParameterAgainAndRefusesAnotherRange) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  std::optional<Trial> trial = study.ask();
  const double x = trial->suggest_float("x", 0, 1);
  EXPECT_EQ(trial->suggest_float("x", 0, 1), x);
  EXPECT_EQ(error_text([&] { trial->suggest_float("x", 0, 2); }),
            "parameter \"x\": trial 0 has it as float from 0 to 1, asked for float from 0 to 2");
  ASSERT_TRUE(study.tell(*trial, complete(1)));

  std::optional<Trial> next = study.ask();
  EXPECT_EQ(error_text([&] { next->suggest_int("x", 0, 1); }),
            "parameter \"x\": the study knows it as float from 0 to 1, asked for int from 0 to 1");
  EXPECT_EQ(error_text([&] { next->suggest_float("x", 0, 2); }), "no error");
}

TEST(Study, RefusesAParameterThatDiffersFromTheDeclaredSpace) {
  auto storage = std::make_shared<MemoryStorage>();
  Study study = Study::create(storage, "s", kMinimize,
                              {.sampler = "random", .seed = 1, .space = small_space()});
  std::optional<Trial> trial = study.ask();
  EXPECT_EQ(error_text([&] { trial->suggest_float("lr", 0.001, 2); }),
            "parameter \"lr\": trial 0 has it as float from 0.001 to 1, asked for float from 0.001 "
            "to 2");
  Space other = small_space();
  other[2].distribution = shared(FloatDistribution{.low = 1e-3, .high = 2});
  EXPECT_EQ(error_text([&] { Study::open(storage, "s", {.space = other}); }),
            "study \"s\": parameter \"lr\": the study's space has float from 0.001 to 1, always; "
            "asked for float from 0.001 to 2, always");
}

TEST(Study, FailsTrialsWhoseResultIsNotFiniteAndMarksThoseAtChanceLevel) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", {Direction::Maximize},
                              {.sampler = "random", .seed = 1, .chance_level = 0.5});
  const double results[] = {0.8, NAN, INFINITY, 0.5};
  for (const double result : results) {
    std::optional<Trial> trial = study.ask();
    ASSERT_TRUE(study.tell(*trial, complete(result)));
  }
  const auto trials = study.history().trials();
  EXPECT_EQ(trials[0].state, TrialState::Complete);
  EXPECT_EQ(trials[0].user_attributes, Attributes());
  EXPECT_EQ(trials[1].state, TrialState::Fail);
  EXPECT_EQ(trials[1].user_attributes,
            (Attributes{{"diverged", "true"}, {"fail_reason", "\"objective 0 is nan\""}}));
  EXPECT_EQ(trials[2].state, TrialState::Fail);
  EXPECT_EQ(trials[3].state, TrialState::Complete);
  EXPECT_EQ(trials[3].user_attributes, (Attributes{{"collapsed", "true"}}));
  EXPECT_EQ(study.best()->number, 0);
}

TEST(Study, GivesAPrunedTrialTheValueOfItsLastReport) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  std::optional<Trial> trial = study.ask();
  trial->report(1, 0.5);
  trial->report(3, 0.25);
  trial->report(3, 9);
  ASSERT_TRUE(study.tell(*trial, {.state = TrialState::Pruned}));
  EXPECT_EQ(study.history().trials()[0].values, std::vector<double>{0.25});

  std::optional<Trial> diverged = study.ask();
  diverged->report(1, NAN);
  ASSERT_TRUE(study.tell(*diverged, {.state = TrialState::Pruned}));
  EXPECT_EQ(study.history().trials()[1].values, std::vector<double>());
  EXPECT_EQ(study.history().trials()[1].state, TrialState::Pruned);
  EXPECT_FALSE(study.best());
}

TEST(Study, LeavesInfeasibleTrialsOutOfTheBest) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  const std::vector<double> constraints[] = {{0.5, -1}, {0, -1}, {NAN}};
  for (int i = 0; i < 3; ++i) {
    std::optional<Trial> trial = study.ask();
    trial->set_constraints(constraints[i]);
    ASSERT_TRUE(study.tell(*trial, complete(i)));
  }
  EXPECT_EQ(study.best()->number, 1);
  EXPECT_EQ(study.history().trials()[0].system_attributes.at("constraints"), "[0.5, -1.0]");
  EXPECT_EQ(violation(study.history().trials()[0]), 0.5);
}

TEST(Study, TellsWhichTrialsNoneOtherBeats) {
  Study study =
      Study::create(std::make_shared<MemoryStorage>(), "s",
                    {Direction::Minimize, Direction::Maximize}, {.sampler = "random", .seed = 1});
  const std::vector<double> results[] = {{1, 1}, {2, 2}, {3, 1}, {0, 0}};
  for (const std::vector<double>& each : results) {
    std::optional<Trial> trial = study.ask();
    ASSERT_TRUE(study.tell(*trial, {.values = each}));
  }
  std::vector<int> numbers;
  for (const TrialRecord& each : study.best_trials()) numbers.push_back(each.number);
  EXPECT_EQ(numbers, std::vector<int>({0, 1, 3}));
}

TEST(Study, TriesEnqueuedParametersNextAndSamplesTheOthers) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1, .space = small_space()});
  EXPECT_TRUE(study.enqueue({{"layer", std::string("int")}, {"lr", 0.5}}));
  EXPECT_FALSE(study.enqueue({{"layer", std::string("int")}, {"lr", 0.5}}, true));
  std::optional<Trial> trial = study.ask();
  EXPECT_EQ(trial->number(), 0);
  EXPECT_EQ(names(trial->record()), std::vector<std::string>({"layer", "width", "lr"}));
  EXPECT_EQ(trial->record().find("layer")->value, 0);
  EXPECT_EQ(trial->record().find("lr")->value, 0.5);
  EXPECT_EQ(trial->record().system_attributes.at("fixed_params"), R"({"layer": "int", "lr": 0.5})");

  EXPECT_EQ(error_text([&] {
              study.enqueue({{"lr", 7.0}});
            }),
            "parameter \"lr\": 7.0 is not a value of float from 0.001 to 1");
  EXPECT_EQ(error_text([&] {
              study.enqueue({{"widht", std::int64_t{2}}});
            }),
            "unknown parameter \"widht\"; known: layer, width, lr\nhint: did you mean \"width\"?");
}

TEST(Study, FailsAnEnqueuedTrialThatCannotBeAndGoesOn) {
  auto storage = std::make_shared<MemoryStorage>();
  Study study = Study::create(storage, "s", kMinimize,
                              {.sampler = "random", .seed = 1, .space = small_space()});
  storage->add_trial(study.record().id, {.state = TrialState::Waiting,
                                         .system_attributes = {{"fixed_params", R"({"lr": 7})"}}});
  std::optional<Trial> trial = study.ask();
  EXPECT_EQ(trial->number(), 1);
  EXPECT_EQ(study.history().trials()[0].state, TrialState::Fail);
  EXPECT_EQ(study.history().trials()[0].user_attributes.at("fail_reason"),
            R"("parameter \"lr\": 7 is not a value of float from 0.001 to 1")");
}

TEST(Study, ProposesOnlyWhatIsAllowed) {
  const auto is_cheap = [](const Assignment& point) {
    for (const Parameter& each : point)
      if (each.name == "lr" && each.value > 0.2) return false;
    return true;
  };
  Study declared = Study::create(
      std::make_shared<MemoryStorage>(), "s", kMinimize,
      {.sampler = "random", .seed = 1, .space = small_space(), .is_allowed = is_cheap});
  Study as_it_goes = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                                   {.sampler = "random", .seed = 1, .is_allowed = is_cheap});
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(declared.ask()->record().find("lr")->value, 0.2);
    EXPECT_LE(as_it_goes.ask()->suggest_float("lr", 1e-3, 1), 0.2);
  }
}

TEST(Study, SaysWhenNothingIsAllowed) {
  Study study = Study::create(
      std::make_shared<MemoryStorage>(), "s", kMinimize,
      {.sampler = "random", .seed = 1, .space = small_space(), .is_allowed = [](const Assignment&) {
         return false;
       }});
  EXPECT_EQ(error_text([&] { study.ask(); }),
            "study \"s\": none of 1000 proposals for trial 0 is allowed");
  EXPECT_EQ(study.history().trials()[0].state, TrialState::Fail);
}

TEST(Study, HoldsAtMostTheTrialsItMay) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1, .max_trials = 2});
  EXPECT_TRUE(study.ask());
  EXPECT_TRUE(study.ask());
  EXPECT_FALSE(study.ask());
}

TEST(Study, RefusesASecondResult) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  std::optional<Trial> trial = study.ask();
  EXPECT_TRUE(study.tell(*trial, complete(1)));
  EXPECT_FALSE(study.tell(*trial, complete(2)));
  EXPECT_EQ(study.best()->values, std::vector<double>{1});
  EXPECT_EQ(error_text([&] { study.tell(0, complete(2)); }),
            "study \"s\": trial 0 is COMPLETE, expected RUNNING");
  EXPECT_EQ(error_text([&] { study.tell(3, complete(2)); }),
            "study \"s\": there is no trial 3, the last is 0");
  std::optional<Trial> next = study.ask();
  EXPECT_EQ(error_text([&] {
              study.tell(1, {.values = {1, 2}});
            }),
            "study \"s\": 2 values told, expected 1, one per objective");
  study.tell(1, complete(0.5));
  EXPECT_EQ(study.best()->number, 1);
}

TEST(Study, TakesUpATrialWhoseWorkerIsGoneWithWhatItHad) {
  Time time{};
  auto storage = std::make_shared<MemoryStorage>([&] { return time; });
  const StudyOptions options = {
      .sampler = "random", .seed = 1, .space = small_space(), .lease = std::chrono::seconds(2)};
  Study gone = Study::create(storage, "s", kMinimize, options);
  Study alive = Study::open(storage, "s", {.lease = std::chrono::seconds(2)});
  std::optional<Trial> lost = gone.ask();
  lost->report(1, 0.5);
  time += std::chrono::seconds(1);
  ASSERT_TRUE(lost->flush());
  time += std::chrono::milliseconds(1999);
  EXPECT_EQ(alive.ask()->number(), 1) << "the lease runs from the last sign of life";
  time += std::chrono::milliseconds(2);

  std::optional<Trial> taken = alive.ask();
  EXPECT_EQ(taken->number(), 0);
  EXPECT_EQ(names(taken->record()), names(lost->record()));
  EXPECT_EQ(taken->record().intermediate_values, (std::map<int, double>{{1, 0.5}}));
  EXPECT_EQ(taken->record().system_attributes.at("lathe:attempt"), "2");

  EXPECT_FALSE(lost->flush());
  EXPECT_EQ(lost->verdict(), Verdict::Prune);
  EXPECT_FALSE(gone.tell(*lost, complete(1)));
  EXPECT_TRUE(alive.tell(*taken, complete(2)));
  EXPECT_EQ(gone.history().trials()[0].values, std::vector<double>{2});
}

TEST(Study, PausesATrialUntilItsPromotion) {
  auto storage = std::make_shared<MemoryStorage>();
  Study study = Study::create(storage, "s", kMinimize,
                              {.sampler = "random", .seed = 1, .space = small_space()});
  std::optional<Trial> trial = study.ask();
  trial->report(1, 0.5);
  trial->set_user_attribute("checkpoint", "\"a.bin\"");
  ASSERT_TRUE(study.tell(*trial, {.state = TrialState::Waiting}));
  EXPECT_EQ(study.history().trials()[0].state, TrialState::Waiting);
  EXPECT_EQ(study.ask()->number(), 1);

  const Claim promotion = {.owner = "w", .promote = study.history().trials()[0].id};
  const std::optional<TrialRecord> promoted = storage->claim(study.record().id, promotion);
  EXPECT_EQ(promoted->number, 0);
  EXPECT_EQ(promoted->user_attributes.at("checkpoint"), "\"a.bin\"");
  EXPECT_EQ(names(*promoted), names(trial->record()));
}

TEST(Study, NamesTheNearestOfWhatItDoesNotKnow) {
  auto storage = std::make_shared<MemoryStorage>();
  Study::create(storage, "widths", kMinimize, {.sampler = "random"});
  EXPECT_EQ(error_text([&] { Study::open(storage, "width"); }),
            "memory: unknown study \"width\"; known: widths\nhint: did you mean \"widths\"?");
  EXPECT_NE(error_text([&] {
              Study::open(storage, "widths", {.sampler = "randm"});
            }).find("did you mean \"random\"?"),
            std::string::npos);
  EXPECT_EQ(error_text([&] { Study::create(storage, "widths", {Direction::Maximize}); }),
            "memory: study \"widths\" has objectives to minimize, asked to maximize");
}

TEST(Study, StoresNothingWhenItsOptionsAreWrong) {
  auto storage = std::make_shared<MemoryStorage>();
  EXPECT_NE(error_text([&] { Study::create(storage, "s", kMinimize, {.sampler = "randm"}); }),
            "no error");
  EXPECT_NE(error_text([&] {
              Study::create(storage, "s", kMinimize, {.sampler = "random", .pruner = "nun"});
            }),
            "no error");
  EXPECT_TRUE(storage->studies().empty());
}

TEST(Study, ChangesNothingBeforeItAsks) {
  auto storage = std::make_shared<MemoryStorage>();
  const StudyId id = storage->create_study("from-optuna", kMinimize, {}, {});
  storage->add_trial(id, {.state = TrialState::Complete, .values = {3}});
  Study study = Study::open(storage, "from-optuna", {.sampler = "random", .seed = 4});
  EXPECT_EQ(study.best()->values, std::vector<double>{3});
  EXPECT_TRUE(storage->study(id).system_attributes.empty());
  study.ask();
  EXPECT_EQ(storage->study(id).system_attributes, (Attributes{{"lathe:pruner", "\"none\""},
                                                              {"lathe:sampler", "\"random\""},
                                                              {"lathe:seed", "4"}}));
}

TEST(Study, RefusesDamagedAttributesOfAStoredStudy) {
  const auto refusal = [](const std::string& key, const std::string& json) {
    auto storage = std::make_shared<MemoryStorage>();
    storage->create_study("s", kMinimize, {}, {{key, json}});
    return error_text([&] { Study::open(storage, "s", {.sampler = "random"}); });
  };
  EXPECT_EQ(refusal("lathe:seed", "-1"),
            "study \"s\": attribute \"lathe:seed\" is not a whole number, at least 0");
  EXPECT_EQ(refusal("lathe:pruner", "7"), "study \"s\": attribute \"lathe:pruner\" is not a text");
  EXPECT_EQ(
      refusal("lathe:space", "["),
      "study \"s\": space: 1:2: invalid JSON: unexpected end of input; expected '[', '{', or a "
      "literal");
}

TEST(Study, NamesItsObjectivesAsOptunaDoes) {
  auto storage = std::make_shared<MemoryStorage>();
  const std::vector<Direction> two = {Direction::Maximize, Direction::Minimize};
  Study::create(storage, "s", two, {.sampler = "random", .objectives = {"accuracy", "size"}});
  const StudyRecord record = storage->study(*storage->find_study("s"));
  EXPECT_EQ(record.system_attributes.at("study:metric_names"), "[\"accuracy\", \"size\"]");
  EXPECT_EQ(objective_names(record), (std::vector<std::string>{"accuracy", "size"}));
  EXPECT_EQ(error_text([&] {
              Study::open(storage, "s", {.sampler = "random", .objectives = {"accuracy", "loss"}});
            }),
            "study \"s\": its objectives are called accuracy, size, not accuracy, loss");
  EXPECT_EQ(error_text([&] {
              Study::create(storage, "t", two, {.sampler = "random", .objectives = {"accuracy"}});
            }),
            "objective accuracy: 1 names for 2 objectives; give one for each direction");
  EXPECT_FALSE(storage->find_study("t"));
}

TEST(Study, RefusesANameThatIsNotUtf8) {
  auto storage = std::make_shared<MemoryStorage>();
  EXPECT_EQ(error_text([&] { Study::create(storage, "caf\xE9", kMinimize); }),
            "a study's name must be UTF-8, which \"caf\\xe9\" is not");
  EXPECT_TRUE(storage->studies().empty());
}

}  // namespace
}  // namespace lathe::study
