#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lathe/core/interrupt.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/io/model.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/search/search_flow.h"
#include "lathe/search/search_report.h"

namespace lathe::search {
namespace {

constexpr const char* kSpace = R"(
[architecture]
layers = [1, 2]
heads = [1, 2, 3]
hidden = [12, 16]
intermediate = 24
norm = ["post", "pre"]
projections = ["linear", "identity"]
[recipe]
lr = [1e-3, 3e-3]
epochs = 2
batch-size = 8
)";

class ArchitectureSearchTest : public testing::Test {
 protected:
  SearchOptions options(const std::string& out) {
    std::ofstream(scratch_.path() / "space.toml") << kSpace;
    SearchOptions result;
    result.space = (scratch_.path() / "space.toml").string();
    result.data = "reviews:train=200,test=40";
    result.length = 24;
    result.samplers = {"random"};
    result.trials = 6;
    result.rung_rows = 20;
    result.finalists = 2;
    result.out = scratch_.path() / out;
    return result;
  }

  io::ScratchDirectory scratch_;
};

// What a study came to, trial by trial.
std::string told(const SearchResult& result) {
  std::string text;
  for (const SearchResult::Study& study : result.studies)
    for (const study::TrialRecord& trial : study.history.trials()) {
      text += fmt::format("{} {}", study.sampler, study::name(trial.state));
      for (const study::Parameter& each : trial.parameters)
        text += fmt::format(" {}={}", each.name, each.value);
      for (const auto& [step, value] : trial.intermediate_values)
        text += fmt::format(" {}:{}", step, value);
      for (const double value : trial.values) text += fmt::format(" {}", value);
      text += "\n";
    }
  for (const Finalist& finalist : result.finalists)
    text += fmt::format("{} {} {}\n", finalist.sampler, finalist.trial,
                        fmt::join(finalist.accuracies, " "));
  return text + fmt::format("{}", result.test_accuracy.value_or(-1));
}

// Rows of two numbers whose label says which is larger.
TEST_F(ArchitectureSearchTest, ChoosesAmongModelsThatReadNumbersAndTestsTheChosen) {
  for (const auto& [split, rows] : {std::pair("train", 200), std::pair("test", 50)}) {
    std::ofstream file(scratch_.path() / (std::string(split) + ".csv"));
    file << "a,b,label\n";
    for (int i = 0; i < rows; ++i) {
      const int a = i * 37 % 101, b = i * 53 % 97;
      file << a / 100.0 << ',' << b / 100.0 << ',' << (a > b ? "left" : "right") << '\n';
    }
  }
  SearchOptions search = options("numbers");
  std::ofstream(scratch_.path() / "space.toml")
      << "[architecture]\nmodel = \"mlp:2,{wide},2\"\nwide = [4, 8, 16]\n"
         "[recipe]\nlr = 3e-2\nepochs = 8\n";
  search.data = scratch_.path().string();
  search.length = 0;
  search.halving = 0;
  search.trials = 3;
  const SearchResult result = run_search(search, {});
  EXPECT_EQ(summarize(result.studies.front()).complete, 3);
  EXPECT_GE(result.finalists.front().mean(), 0.8);
  ASSERT_TRUE(result.test_accuracy.has_value());
  EXPECT_GE(*result.test_accuracy, 0.8);
  const io::Model best = io::load_model((search.out / "best").string());
  EXPECT_EQ(best.family->name, "mlp");

  search.out = scratch_.path() / "few";
  search.limits = {{"parameters", 20}};
  EXPECT_EQ(error_text([&] { run_search(search, {}); }),
            "max parameters=20: no point of the space has so few; the smallest possible is 22");
  search.limits.clear();
  search.supernet = 1;
  EXPECT_EQ(error_text([&] { run_search(search, {}); }),
            "supernet: learns words for the family bert, and mlp:2,{wide},2 is of another");
  search.supernet = 0;
  search.length = 24;
  EXPECT_EQ(error_text([&] { run_search(search, {}); }),
            "length: is for texts, which a mlp model does not read");
  search.length = 0;
  search.truncation = "head+tail";
  EXPECT_EQ(error_text([&] { run_search(search, {}); }),
            "truncation: is for texts, which a mlp model does not read");
  EXPECT_FALSE(std::filesystem::exists(search.out));
}

TEST_F(ArchitectureSearchTest, ChoosesAmongTheBestAndWritesTheModel) {
  const SearchResult result = run_search(options("s"), {});
  ASSERT_EQ(result.studies.size(), 1U);
  EXPECT_EQ(result.measured_on, "40 rows held out of train");
  const StudySummary summary = summarize(result.studies.front());
  EXPECT_EQ(summary.trials, 6);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_EQ(summary.complete + summary.given_up, 6);
  ASSERT_EQ(result.finalists.size(), 2U);
  EXPECT_GE(result.finalists[0].mean(), result.finalists[1].mean());
  EXPECT_EQ(result.finalists[0].accuracies.size(), 2U);
  EXPECT_TRUE(result.test_accuracy);
  // The model is the chosen candidate's: its configuration says so.
  const io::Model model = io::load_model((scratch_.path() / "s" / "best").string());
  for (const auto& [key, value] : result.finalists[0].candidate.architecture)
    EXPECT_EQ(model.config.at(key), value) << key;
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "s" / "report.html"));
}

// A candidate of the parent's sizes is the parent, and smaller ones are parts of it.
TEST_F(ArchitectureSearchTest, StartsFromAnotherModelsWeights) {
  const char* const data = "reviews:train=200,test=40";
  experiment::FineTuneOptions training;
  training.model = "bert-tiny";
  training.data = data;
  training.length = 24;
  training.trainer.epochs = 8;
  training.trainer.cycles = 1;
  training.trainer.batch_examples = 8;
  training.trainer.learning_rate = 5e-4;
  training.is_tested = false;
  training.out = scratch_.path() / "parent";
  experiment::fine_tune(training, {});

  SearchOptions grown = options("s");
  std::ofstream(grown.space) << R"(
[architecture]
layers = [1, 2]
hidden = [64, 128]
[recipe]
epochs = 0
)";
  grown.from = training.out.string();
  grown.samplers = {"grid"};
  grown.trials = 4;
  grown.halving = 0;
  grown.objective_split = "train";  // which the parent knows by heart
  const SearchResult result = run_search(grown, {});
  const double known = experiment::evaluate_on(io::load_model(grown.from),
                                               {.data = data, .split = "train", .length = 24}, {})
                           .classes->accuracy;
  EXPECT_GT(known, 0.6);
  ASSERT_EQ(summarize(result.studies.front()).complete, 4);
  int same = 0;
  for (const study::TrialRecord& trial : result.studies.front().history.trials()) {
    const bool is_parent = std::ranges::all_of(
        trial.parameters, [](const study::Parameter& each) { return each.value == 1; });
    same += is_parent;
    if (is_parent) {
      EXPECT_EQ(trial.values.front(), known);
    }
  }
  EXPECT_EQ(same, 1);
}

// The same from a model that was trained to guess words: it has no labels, and its table of words
// is what every architecture starts with.
TEST_F(ArchitectureSearchTest, StartsFromAModelOfWords) {
  experiment::FineTuneOptions training;
  training.model = "bert-tiny";
  training.data = "reviews:train=200,test=40";
  training.graph.objective = "mlm";
  training.length = 24;
  training.trainer.max_steps = 2;
  training.is_tested = false;
  training.out = scratch_.path() / "words";
  experiment::fine_tune(training, {});
  SearchOptions grown = options("s");
  grown.from = training.out.string();
  grown.trials = 2;
  const SearchResult result = run_search(grown, {});
  EXPECT_EQ(summarize(result.studies.front()).failed, 0);
  EXPECT_FALSE(result.finalists.empty());
}

TEST_F(ArchitectureSearchTest, ReadsHeadAndTailOfLongTexts) {
  SearchOptions both = options("s");
  both.trials = both.finalists = both.seeds = 1;
  both.truncation = "head+tail";
  run_search(both, {});
  EXPECT_EQ(io::load_model((both.out / "best").string()).reading.truncation,
            data::Truncation::HeadTail);
  both.truncation = "tail";
  both.out = scratch_.path() / "none";
  EXPECT_THAT(error_text([&] { run_search(both, {}); }), testing::HasSubstr("truncation"));
  EXPECT_FALSE(std::filesystem::exists(both.out));
}

TEST_F(ArchitectureSearchTest, RepeatsItself) {
  SearchOptions first = options("a"), second = options("b");
  first.samplers = second.samplers = {"tpe:startup=3"};
  EXPECT_EQ(told(run_search(first, {})), told(run_search(second, {})));
}

TEST_F(ArchitectureSearchTest, GoesOnWhereItWasInterrupted) {
  const std::string whole = told(run_search(options("whole"), {}));
  int num_interruptions = 0;
  std::optional<SearchResult> result;
  for (int most = 40; !result; most += 25) {
    int asked = 0;
    try {
      result = run_search(options("parts"), {}, {.should_stop = [&] { return ++asked > most; }});
    } catch (const Interrupted&) {
      ++num_interruptions;
    }
  }
  EXPECT_GT(num_interruptions, 3);
  EXPECT_EQ(told(*result), whole);
}

TEST_F(ArchitectureSearchTest, TrainsNoModelTwice) {
  SearchOptions both = options("s");
  both.samplers = {"grid", "grid:preset=lathe"};  // the same points in the same order
  const SearchResult result = run_search(both, {});
  EXPECT_EQ(summarize(result.studies[0]).copied, 0);
  EXPECT_EQ(summarize(result.studies[1]).copied, 6);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(result.studies[0].history.trials()[static_cast<std::size_t>(i)].values,
              result.studies[1].history.trials()[static_cast<std::size_t>(i)].values);
}

TEST_F(ArchitectureSearchTest, WorksOnSeveralTrialsAtOnce) {
  SearchOptions several = options("s");
  several.jobs = 3;
  several.samplers = {"random"};
  ThreadPool pool(3);
  const SearchResult result = run_search(several, {.pool = &pool});
  const StudySummary summary = summarize(result.studies.front());
  EXPECT_EQ(summary.complete + summary.given_up, 6);
}

TEST_F(ArchitectureSearchTest, EndsInAGridOfGoodValues) {
  SearchOptions narrow = options("s");
  narrow.narrow = 4;
  const SearchResult result = run_search(narrow, {});
  ASSERT_EQ(result.studies.size(), 2U);
  EXPECT_EQ(result.studies[1].sampler, "narrowed");
  const StudySummary summary = summarize(result.studies[1]);
  EXPECT_LE(summary.trials, 4);
  EXPECT_GE(summary.trials, 2);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_GE(summary.copied, 1);  // the best trial's own point
}

// The widest with the longest is more than both were with others.
TEST_F(ArchitectureSearchTest, KeepsTheGridOfGoodValuesWithinTheBudget) {
  SearchOptions narrow = options("s");
  std::ofstream(narrow.space) << "[architecture]\nlayers = 1\nheads = 1\nhidden = [12, 16]\n"
                                 "intermediate = [16, 64]\n[recipe]\nepochs = 1\n";
  narrow.halving = 0;
  narrow.trials = 8;
  narrow.narrow = 4;
  narrow.limits["bit-operations"] = 24.0 * 32 * 32 * (4 * 16 * 16 + 2 * 16 * 64);
  const SearchResult result = run_search(narrow, {});
  const StudySummary summary = summarize(result.studies[1]);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_EQ(summary.complete, 3);
  EXPECT_EQ(summary.copied, 3);
}

TEST_F(ArchitectureSearchTest, SharesItsTrialsWithWorkers) {
  SearchOptions alone = options("alone");
  const std::string expected = told(run_search(alone, {}));
  SearchOptions shared = options("shared");
  shared.storage = "sqlite:///" + (scratch_.path() / "shared.db").string();
  EXPECT_EQ(error_text([&] { run_search(shared, {}); }),
            "storage: needs study, a name for this search there\nhint: --study NAME");
  shared.study = "lab";
  shared.trials = 2;
  run_search(shared, {});
  work_on_search(shared.storage, "lab",
                 [&](SearchOptions& worker) {
                   EXPECT_EQ(worker.samplers, shared.samplers);
                   EXPECT_EQ(worker.length, 24);
                   worker.trials = 6;
                   worker.out = scratch_.path() / "worker";
                 },
                 {});
  shared.trials = 6;
  EXPECT_EQ(told(run_search(shared, {})), expected);
  EXPECT_EQ(error_text([&] {
              work_on_search(shared.storage, "lap", {}, {});
            }).substr(shared.storage.size()),
            ": unknown search \"lap\"; known: lab\nhint: did you mean \"lab\"?");
}

TEST_F(ArchitectureSearchTest, RebuildsATrialFromItsParameters) {
  SearchOptions all = options("s");
  all.halving = 0;
  all.trials = 3;
  const SearchResult result = run_search(all, {});
  const auto accuracy =
      export_trial({.search = all.out, .trial = 1, .target = scratch_.path() / "again"}, {});
  EXPECT_EQ(accuracy, result.studies.front().history.trials()[1].values.front());
  export_trial({.search = all.out, .target = scratch_.path() / "chosen"}, {});
  EXPECT_EQ(io::load_model((scratch_.path() / "chosen").string()).config,
            io::load_model((all.out / "best").string()).config);
  EXPECT_THAT(error_text([&] {
                export_trial({.search = all.out, .trial = 9, .target = scratch_.path() / "x"}, {});
              }),
              testing::EndsWith("trial 9: the study random has 3"));
}

TEST_F(ArchitectureSearchTest, RefusesToGoOnWithOtherOptions) {
  SearchOptions changed = options("s");
  changed.trials = 1;
  run_search(changed, {});
  changed.length = 32;
  EXPECT_THAT(error_text([&] { run_search(changed, {}); }),
              testing::StartsWith("length 32: the search in "));
  // More trials are more of the same.
  changed.length = 24;
  changed.trials = 2;
  EXPECT_EQ(run_search(changed, {}).studies.front().history.trials().size(), 2U);
}

}  // namespace
}  // namespace lathe::search
