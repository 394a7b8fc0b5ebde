#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/search/search_flow.h"
#include "lathe/search/search_report.h"
#include "lathe/search/search_studies.h"
#include "lathe/search/train_candidate.h"

namespace lathe::search {
namespace {

constexpr const char* kSpace = R"(
[architecture]
layers = [1, 2]
heads = 2
hidden = 16
intermediate = [24, 32]
[precision.weights]
integer = {format = "int:{width},channel", width = [4, 8]}
[precision.data]
integer = "int:8,asymmetric"
[pruning]
sparsity = [0, 0.5]
method = ["l1", "random"]
layers = "encoder"
[recipe]
lr = 1e-2
epochs = 1
epochs-after = 1
batch-size = 8
)";

class CompressionSearchTest : public testing::Test {
 protected:
  SearchOptions options(const std::string& out) {
    std::ofstream(scratch_.path() / "space.toml") << kSpace;
    SearchOptions result;
    result.space = (scratch_.path() / "space.toml").string();
    result.compresses = true;
    result.data = "reviews:train=200,test=40";
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

  io::ScratchDirectory scratch_;
};

std::string told(const SearchResult& result) {
  std::string text;
  for (const study::TrialRecord& trial : result.studies.front().history.trials()) {
    text += fmt::format("{}", study::name(trial.state));
    for (const auto& [step, value] : trial.intermediate_values)
      text += fmt::format(" {}:{}", step, value);
    for (const char* const key : {"accuracy", kUncompressed, kCompressed})
      if (trial.user_attributes.contains(key)) text += " " + trial.user_attributes.at(key);
    text += "\n";
  }
  return text;
}

TEST_F(CompressionSearchTest, ComparesThreeWaysOnTheSameModels) {
  SearchOptions compared = options("s");
  compared.halving = 0;
  compared.compares = true;
  const SearchResult result = run_search(compared, {});
  for (const study::TrialRecord& trial : result.studies.front().history.trials()) {
    EXPECT_EQ(trial.state, study::TrialState::Complete);
    EXPECT_TRUE(trial.user_attributes.contains(kUncompressed));
    EXPECT_TRUE(trial.user_attributes.contains(kCompressed));
  }
  EXPECT_THAT(curves_table(result).to_text(), testing::ContainsRegex("compressed and trained +4 "));
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "s" / "curves.svg"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path() / "s" / "trials"));
}

// Order of rows, dropout, rate and moments go on behind the place of the compression.
TEST_F(CompressionSearchTest, IsOneTrainingWhereNothingIsCompressed) {
  const TrialData data(options("s"), "bert-tiny", {}, {});
  Candidate floats{.architecture = {{"num_hidden_layers", std::int64_t{1}},
                                    {"num_attention_heads", std::int64_t{2}},
                                    {"hidden_size", std::int64_t{16}},
                                    {"intermediate_size", std::int64_t{24}}},
                   .formats = {{".*", {{compress::TensorRole::Weights, "float"}}}},
                   .recipe = {{"lr", 1e-2}, {"epochs", 1}, {"epochs-after", 2}, {"batch-size", 8}}};
  const auto train = [&](const Candidate& candidate) {
    return train_candidate(data, candidate, 0, {}, scratch_.path() / "t", false, {}, {})->model;
  };
  ASSERT_TRUE(is_compressed_on_the_way(data, floats));
  const io::Model stages = train(floats), whole = train(uncompressed(floats));
  ASSERT_EQ(stages.state.size(), whole.state.size());
  for (const auto& [name, tensor] : whole.state)
    EXPECT_TRUE(identical(stages.state.at(name), tensor)) << name;
}

TEST_F(CompressionSearchTest, LearnsFromItsOwnAnswersBehindTheCompression) {
  const TrialData data(options("s"), "bert-tiny", {}, {});
  const auto train = [&](double own_weight) {
    const Candidate candidate{
        .architecture = {{"num_hidden_layers", std::int64_t{1}},
                         {"num_attention_heads", std::int64_t{2}},
                         {"hidden_size", std::int64_t{16}},
                         {"intermediate_size", std::int64_t{24}}},
        .formats = {{".*", {{compress::TensorRole::Weights, "int:8,channel"}}}},
        .recipe = {{"lr", 1e-2},
                   {"epochs", 1},
                   {"epochs-after", 1},
                   {"own-weight", own_weight},
                   {"batch-size", 8}}};
    EXPECT_FALSE(uncompressed(candidate).recipe.contains("own-weight"));
    return train_candidate(data, candidate, 0, {}, scratch_.path() / "t", false, {}, {})
        ->model.state.at("classifier.bias");
  };
  EXPECT_TRUE(identical(train(0.5), train(0.5)));
  EXPECT_FALSE(identical(train(0.5), train(0)));
  EXPECT_EQ(error_text([&] { train(2); }), "own-weight 2: expected 0 to 1");
}

TEST_F(CompressionSearchTest, PrunesAndRoundsTheModelThatItWrites) {
  SearchOptions both = options("s");
  both.epochs_after = 0;
  std::ofstream(scratch_.path() / "half.toml") << R"(
[architecture]
layers = [1, 2]
[precision.weights]
integer = "int:8,channel"
[pruning]
sparsity = 0.5
)";
  both.space = (scratch_.path() / "half.toml").string();
  both.trials = 1;
  both.halving = 0;
  const SearchResult result = run_search(both, {});
  const io::Model model = io::load_model((both.out / "best").string());
  EXPECT_FALSE(model.graph.nodes_of("decode").empty());
  EXPECT_NEAR(result.finalists.front().bits.weights, 8.1, 0.2);
  const Costs& costs = result.finalists.front().costs;
  // The tables and the rest are whole: 4 bytes each. Half of the layers' numbers are 8 bits and
  // some, and each has a bit of a mask.
  EXPECT_LT(costs.at("bytes"), 4 * costs.at("parameters"));
}

TEST_F(CompressionSearchTest, GoesOnWhereItWasInterrupted) {
  SearchOptions whole = options("whole"), parts = options("parts");
  whole.trials = parts.trials = 2;
  whole.compares = parts.compares = true;
  whole.halving = parts.halving = 0;
  const std::string expected = told(run_search(whole, {}));
  std::optional<SearchResult> result;
  int num_interruptions = 0;
  for (int most = 40; !result; most += 30) {
    int asked = 0;
    try {
      result = run_search(parts, {}, {.should_stop = [&] { return ++asked > most; }});
    } catch (const Interrupted&) {
      ++num_interruptions;
    }
  }
  EXPECT_GT(num_interruptions, 2);
  EXPECT_EQ(told(*result), expected);
}

TEST_F(CompressionSearchTest, KeepsWithinBudgetsOfAnyCost) {
  SearchOptions limited = options("s");
  limited.trials = 6;
  limited.limits["bytes"] = 4e6;
  EXPECT_THAT(error_text([&] {
                SearchOptions small = limited;
                small.limits["bytes"] = 100;
                run_search(small, {});
              }),
              testing::StartsWith("max bytes=100: no point of the space has so few; the smallest "
                                  "possible is "));
  EXPECT_FALSE(std::filesystem::exists(limited.out));
  const SearchResult result = run_search(limited, {});
  for (const study::TrialRecord& trial : result.studies.front().history.trials())
    EXPECT_LE(std::stod(trial.user_attributes.at("bytes")), 4e6);
  SearchOptions slow = options("slow");
  slow.trials = 1;
  slow.limits["latency"] = 1e-9;
  EXPECT_THAT(error_text([&] { run_search(slow, {}); }),
              testing::HasSubstr("costs more than the budget"));
}

TEST_F(CompressionSearchTest, FindsAFrontOfAccuracyAndACost) {
  SearchOptions front = options("s");
  front.front = "parameters";
  front.finalists = 4;
  const SearchResult result = run_search(front, {});
  for (const study::TrialRecord& trial : result.studies.front().history.trials())
    ASSERT_EQ(trial.values.size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(front.out / "front.svg"));
  // Each finalist is cheaper than those that are more accurate.
  for (const Finalist& a : result.finalists)
    for (const Finalist& b : result.finalists)
      if (a.found > b.found) {
        EXPECT_GT(a.costs.at("parameters"), b.costs.at("parameters"));
      }
}

TEST_F(CompressionSearchTest, TrainsTheChosenOneForLongerAndOnAllRows) {
  SearchOptions longer = options("s");
  longer.trials = 1;
  longer.longer = 3;
  longer.whole = 2;
  const SearchResult result = run_search(longer, {});
  EXPECT_EQ(result.longer_accuracies.size(), 4U);  // one before the compression
  EXPECT_FALSE(result.longer_losses.empty());
  EXPECT_EQ(result.finalists.front().whole_accuracies.size(), 2U);
  EXPECT_EQ(run_search(longer, {}).finalists.front().whole_accuracies,
            result.finalists.front().whole_accuracies);
}

}  // namespace
}  // namespace lathe::search
