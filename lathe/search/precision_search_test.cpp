#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/search/finalist_training.h"
#include "lathe/search/front_comparison.h"
#include "lathe/search/search_flow.h"
#include "lathe/search/search_report.h"

namespace lathe::search {
namespace {

constexpr const char* kData = "reviews:train=200,test=40";

constexpr const char* kSpace = R"(
[precision.weights]
float = "float"
integer = {format = "int:{width},channel", width = [2, 4, 8]}
binary = "binary:scaled"
[precision.data]
float = "float"
integer = {format = "int:{width},dynamic", width = [4, 8]}
[recipe]
epochs = 1
lr = 1e-3
batch-size = 8
)";

class PrecisionSearchTest : public testing::Test {
 protected:
  // A small classifier, trained once for all tests of this process.
  static void SetUpTestSuite() {
    shared_ = std::make_unique<io::ScratchDirectory>();
    experiment::FineTuneOptions options;
    options.model = "bert-tiny";
    options.data = kData;
    options.length = 24;
    options.trainer.epochs = 1;
    options.trainer.cycles = 1;
    options.trainer.max_steps = 6;
    options.is_tested = false;
    options.out = shared_->path() / "model";
    experiment::fine_tune(options, {});
  }
  static void TearDownTestSuite() { shared_.reset(); }

  SearchOptions options(const std::string& out, const char* space = kSpace) {
    std::ofstream(scratch_.path() / "space.toml") << space;
    SearchOptions result;
    result.space = (scratch_.path() / "space.toml").string();
    result.model = (shared_->path() / "model").string();
    result.data = kData;
    result.length = 24;
    result.samplers = {"random"};
    result.trials = 4;
    result.rung_rows = 20;
    result.calibration = 16;
    result.finalists = 1;
    result.seeds = 1;
    result.out = scratch_.path() / out;
    return result;
  }

  static std::unique_ptr<io::ScratchDirectory> shared_;
  io::ScratchDirectory scratch_;
};
std::unique_ptr<io::ScratchDirectory> PrecisionSearchTest::shared_;

TEST_F(PrecisionSearchTest, StartsFromTheBestByDamageAndWritesItsCodes) {
  const SearchResult result = run_search(options("s"), {});
  EXPECT_TRUE(result.is_precision);
  const StudySummary summary = summarize(result.studies.front());
  EXPECT_EQ(summary.failed, 0);
  EXPECT_EQ(summary.complete + summary.given_up, 4);
  ASSERT_EQ(result.finalists.size(), 1U);
  // What is written has the formats, and so many bits as the search said before it made any.
  const io::Model model = io::load_model((scratch_.path() / "s" / "best").string());
  const compress::AverageBits bits = compress::average_bits(model.graph);
  EXPECT_DOUBLE_EQ(bits.weights, result.finalists[0].bits.weights);
  EXPECT_DOUBLE_EQ(bits.data, result.finalists[0].bits.data);
}

TEST_F(PrecisionSearchTest, StaysWithinABudget) {
  for (const char* const sampler : {"random", "tpe:startup=2"}) {
    SCOPED_TRACE(sampler);
    SearchOptions tight = options(std::string("s") + sampler[0]);
    tight.samplers = {sampler};
    tight.trials = 6;
    tight.max_weight_bits = 2.5;
    tight.max_data_bits = 8.5;
    const SearchResult result = run_search(tight, {});
    EXPECT_EQ(result.studies.front().history.trials().size(), 6U);
    for (const study::TrialRecord& trial : result.studies.front().history.trials()) {
      EXPECT_LE(std::stod(trial.user_attributes.at("weight_bits")), 2.5);
      EXPECT_LE(std::stod(trial.user_attributes.at("data_bits")), 8.5);
    }
  }
}

TEST_F(PrecisionSearchTest, BeginsAtDifferentPointsSideBySide) {
  SearchOptions several = options("s");
  several.jobs = 3;
  several.max_weight_bits = 4;
  ThreadPool pool(3);
  const SearchResult result = run_search(several, {.pool = &pool});
  std::set<std::string> points;
  for (const study::TrialRecord& trial : result.studies.front().history.trials()) {
    std::string text;
    for (const study::Parameter& each : trial.parameters) text += fmt::format("{} ", each.value);
    EXPECT_TRUE(points.insert(text).second) << "trial " << trial.number;
  }
  EXPECT_EQ(points.size(), 4U);
}

TEST_F(PrecisionSearchTest, NamesTheSmallestPossibleBudget) {
  SearchOptions impossible = options("s");
  impossible.max_weight_bits = 0.9;
  EXPECT_THAT(error_text([&] { run_search(impossible, {}); }),
              testing::MatchesRegex("max-weight-bits 0.9: no point of the space has so few; the "
                                    "smallest possible is 1\\..*"));
  EXPECT_FALSE(std::filesystem::exists(impossible.out));
}

// One that is compared alone would have its turn when all trials are over.
TEST_F(PrecisionSearchTest, RefusesFormatsThatThePrecisionLoses) {
  const SearchOptions beside = options("s", R"(
[precision.weights]
integer = {format = "int:{width}", width = [2, 4]}
[precision.uniform]
levels = "nf4"
)");
  EXPECT_EQ(error_text([&] { run_search(beside, {.precision = engine::Precision::Bf16}); }),
            fmt::format("space {}: format nf4 has 24 significant bits, but precision bf16 keeps 8",
                        beside.space));
  EXPECT_FALSE(std::filesystem::exists(beside.out));
}

TEST_F(PrecisionSearchTest, TriesFormatsForAllLayersAlike) {
  SearchOptions both = options("s");
  both.trials = 1;
  both.tries_uniform = true;
  both.max_weight_bits = 3;  // of 5 formats of weights binary and int:2 are within
  const SearchResult result = run_search(both, {});
  ASSERT_EQ(result.studies.size(), 2U);
  EXPECT_EQ(result.studies[1].sampler, "uniform");
  // Each with 3 formats of data.
  EXPECT_EQ(result.studies[1].history.trials().size(), 6U);
  for (const study::TrialRecord& trial : result.studies[1].history.trials())
    EXPECT_LE(std::stod(trial.user_attributes.at("weight_bits")), 3);
}

// A front has points of few bits and of many, and beside it what one format for all layers has,
// beaten or not, all trained with the same seeds.
TEST_F(PrecisionSearchTest, TrainsAFrontAndUniformFormatsOnAllRows) {
  SearchOptions front = options("s", R"(
[precision.weights]
integer = {format = "int:{width},channel", width = [4, 8]}
binary = "binary:scaled"
[precision.uniform]
nf4 = "nf4"
[precision.data]
integer = "int:8,dynamic"
[recipe]
epochs = 1
batch-size = 8
)");
  front.front = "weight-bits";
  front.trials = 8;
  front.finalists = 2;
  front.tries_uniform = true;
  front.whole = 2;
  const SearchResult result = run_search(front, {});
  double least = 8, most = 1;
  for (const study::TrialRecord& trial : result.studies.front().history.trials()) {
    least = std::min(least, std::stod(trial.user_attributes.at("weight_bits")));
    most = std::max(most, std::stod(trial.user_attributes.at("weight_bits")));
  }
  EXPECT_LE(least, 2);
  EXPECT_GT(most, 5);
  // It begins with what it is compared with, which is trained once.
  for (int number = 0; number < 3; ++number)
    EXPECT_EQ(result.studies.front()
                  .history.trials()[static_cast<std::size_t>(number)]
                  .user_attributes.at("copied_from"),
              fmt::format("\"uniform {}\"", number));
  // Uniform ones have binary's bits, about 4 and about 8; of those between two of them one is left,
  // whatever luck the others had.
  int uniform = 0, few = 0, many = 0;
  for (const Finalist& finalist : result.finalists) {
    uniform += finalist.is_uniform;
    if (!finalist.is_uniform) ++(finalist.bits.weights < 4.2 ? few : many);
    EXPECT_EQ(finalist.whole_accuracies.size(), 2U);
    EXPECT_EQ(finalist.losses.size(), 1U);
  }
  EXPECT_EQ(uniform, 4);  // one of them beside, which no trial had
  EXPECT_LE(few, 1);
  EXPECT_LE(many, 1);
  EXPECT_LE(result.finalists.size(), 6U);
  const std::vector<UniformRival> rivals = compare_with_uniform(result);
  ASSERT_EQ(rivals.size(), 4U);
  EXPECT_EQ(uniform_text(rivals[2].uniform->candidate), "nf4 of int:8,dynamic");
  EXPECT_FALSE(rivals[2].uniform->found);
  // What is known is not trained again.
  const SearchResult again = run_search(front, {});
  ASSERT_EQ(again.finalists.size(), result.finalists.size());
  for (std::size_t i = 0; i < again.finalists.size(); ++i)
    EXPECT_EQ(again.finalists[i].whole_accuracies, result.finalists[i].whole_accuracies);
}

// The model that formats are chosen with has not seen the rows that choose; the last training may
// begin with one that has.
TEST_F(PrecisionSearchTest, BeginsTheLastTrainingWithAnotherModel) {
  experiment::FineTuneOptions training;
  training.model = "bert-tiny";
  training.data = kData;
  training.length = 24;
  training.trainer.max_steps = 3;
  training.is_tested = false;
  training.out = scratch_.path() / "other";
  experiment::fine_tune(training, {});
  SearchOptions twice = options("twice");
  twice.whole_model = training.out.string();
  twice.is_damage_measured = false;
  twice.trials = twice.whole = 1;
  twice.whole_epochs = 0;
  EXPECT_EQ(run_search(twice, {}).finalists.front().whole_accuracies.size(), 1U);
  // No format rounds a layer norm.
  const auto scales_of = [](const std::filesystem::path& model) {
    const Tensor scales =
        io::load_model(model.string()).state.at("bert.embeddings.LayerNorm.weight");
    return std::vector<float>(scales.data<float>().begin(), scales.data<float>().end());
  };
  const std::vector<float> last = scales_of(twice.out / "whole" / "random-0-seed-1");
  EXPECT_EQ(last, scales_of(training.out));
  EXPECT_NE(last, scales_of(twice.model));

  SearchOptions wrong = options("wrong");
  wrong.whole_teacher = training.out.string();
  EXPECT_EQ(error_text([&] { run_search(wrong, {}); }),
            "whole-teacher: trials have no teacher\nhint: --teacher DIR");
}

TEST_F(PrecisionSearchTest, ComparesByAccuracyLessTheCostOfBits) {
  SearchOptions costly = options("s");
  costly.bit_cost = 0.01;
  costly.halving = 0;
  const SearchResult result = run_search(costly, {});
  for (const study::TrialRecord& trial : result.studies.front().history.trials()) {
    const auto number = [&](const char* name) { return std::stod(trial.user_attributes.at(name)); };
    // Attributes are written with six digits.
    EXPECT_NEAR(trial.values.front(),
                number("accuracy") - 0.01 * (number("weight_bits") + number("data_bits")) / 2,
                1e-5);
  }
}

TEST_F(PrecisionSearchTest, RoundsWithoutTrainingWhereThereAreNoEpochs) {
  SearchOptions plain = options("s", R"(
[precision.families]
float = "float"
integer = {format = "fixed:{width},{fraction}", width = [8, 16], fraction = [4, 8]}
[recipe]
epochs = 0
)");
  const SearchResult result = run_search(plain, {});
  EXPECT_EQ(summarize(result.studies.front()).complete, 4);
  EXPECT_EQ(result.finalists.front().accuracies.front(), result.finalists.front().found);
}

TEST_F(PrecisionSearchTest, LeavesOutFinalistsThatCannotBeTrained) {
  const SearchOptions both = options("s");
  const engine::ExecutionOptions execution;
  const experiment::Callbacks callbacks;
  const std::string builder = "bert-tiny";
  const TrialData data(both, builder, execution, callbacks);
  SearchDirectory directory(both);
  FinalistTraining training(both, builder, {.factor = 1, .count = 1}, data, directory, execution,
                            callbacks);
  Finalist good{.sampler = "random", .found = 0.5};
  good.candidate.recipe = {{"epochs", 1}};
  good.costs["parameters"] = 7;
  Finalist bad = good;
  bad.trial = 1;
  bad.candidate.recipe = {{"lr", -1}};
  std::vector<Finalist> finalists = {bad, good};
  training.train_again(finalists);
  ASSERT_EQ(finalists.size(), 1U);
  EXPECT_EQ(finalists.front().parameters, 7);
  EXPECT_THAT(training.left_out(), testing::ElementsAre(testing::StartsWith("random 1, lr -1: ")));
  // One that no study found is as good, and is not chosen.
  Finalist beside = good;
  beside.sampler = "beside";
  beside.found.reset();
  finalists = {beside, good};
  training.train_again(finalists);
  EXPECT_EQ(finalists.front().mean(), finalists.back().mean());
  EXPECT_EQ(finalists.front().sampler, "random");
  std::vector<Finalist> none = {bad};
  EXPECT_THAT(error_text([&] { training.train_again(none); }),
              testing::StartsWith("none of the best could be trained again: random 1, lr -1: "));
}

TEST_F(PrecisionSearchTest, LearnsFromTeachersAsWell) {
  SearchOptions alone = options("alone"), taught = options("taught");
  alone.trials = taught.trials = 1;
  alone.is_damage_measured = taught.is_damage_measured = false;
  alone.longer = taught.longer = 1;
  taught.teacher = taught.model;
  const SearchResult first = run_search(alone, {}), second = run_search(taught, {});
  ASSERT_EQ(first.longer_losses.size(), second.longer_losses.size());
  EXPECT_NE(first.longer_losses, second.longer_losses);
}

TEST_F(PrecisionSearchTest, TriesEachFamilyAlone) {
  SearchOptions families = options("s");
  families.trials = 1;
  families.is_damage_measured = false;
  families.family_trials = 3;
  const SearchResult result = run_search(families, {});
  std::vector<std::string> names;
  for (const SearchResult::Study& study : result.studies) names.push_back(study.sampler);
  EXPECT_THAT(names,
              testing::ElementsAre("random", "family float", "family integer", "family binary"));
  EXPECT_EQ(result.studies[1].history.trials().size(), 1U);
  EXPECT_EQ(result.studies[2].history.trials().size(), 3U);
  EXPECT_TRUE(std::filesystem::exists(families.out / "families.svg"));
}

}  // namespace
}  // namespace lathe::search
