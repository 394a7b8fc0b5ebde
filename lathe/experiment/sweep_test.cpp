#include "lathe/experiment/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/sweep_report.h"
#include "lathe/experiment/testing/opinions.h"

namespace lathe::experiment {
namespace {

using testing::HasSubstr;

class SweepTest : public testing::Test {
 protected:
  SweepTest() {
    options_.settings.model = io::write_tiny_bert(scratch_, "m");
    options_.settings.data = write_opinions(scratch_, "data");
    options_.formats = "fixed:{w},{w/2} w=4,8";
    options_.settings.batch_size = 8;
    options_.settings.out = scratch_ / "sweep";
  }

  io::ScratchDirectory scratch_;
  SweepOptions options_;
};

TEST_F(SweepTest, MeasuresOnRowsHeldOutOfTrain) {
  const SweepResult result = sweep(options_, {});
  EXPECT_EQ(result.measured_on, "8 rows held out of train");
  ASSERT_EQ(result.points.size(), 2u);
  EXPECT_EQ(result.points[0].format, "fixed:4,2");
  EXPECT_EQ(result.points[0].bits, 4);
  EXPECT_TRUE(result.points[1].trained.has_value());
  EXPECT_THAT(scratch_.read("sweep/table.md"), HasSubstr("8 rows held out of train"));
  EXPECT_THAT(scratch_.read("sweep/sweep.svg"), HasSubstr("8 rows held out of train"));
}

TEST_F(SweepTest, MeasuresOnASplitThatIsAskedFor) {
  options_.settings.split = "test";
  options_.settings.epochs = {0};
  const SweepResult result = sweep(options_, {});
  EXPECT_EQ(result.measured_on, "12 rows of the split test");
  EXPECT_FALSE(result.points[0].trained.has_value());
}

TEST_F(SweepTest, GoesOnWhereItWasStopped) {
  const SweepResult whole = sweep(options_, {});
  options_.settings.out = scratch_ / "parts";
  int asked = 0;
  Callbacks callbacks;
  callbacks.should_stop = [&] { return ++asked > 12; };
  EXPECT_THROW(sweep(options_, {}, callbacks), Interrupted);
  options_.settings.resumes = true;
  const SweepResult second = sweep(options_, {});
  EXPECT_EQ(second.plain, whole.plain);
  for (std::size_t i = 0; i < whole.points.size(); ++i) {
    EXPECT_EQ(second.points[i].rounded, whole.points[i].rounded);
    EXPECT_EQ(second.points[i].trained, whole.points[i].trained);
  }
}

TEST_F(SweepTest, GivesTheSameResultsSideBySide) {
  options_.formats = "fixed:{w},{w/2} w=4,5,6,7,8";
  const SweepResult one_by_one = sweep(options_, {});
  const std::string results = scratch_.read("sweep/results.json");
  options_.settings.out = scratch_ / "side by side";
  options_.settings.jobs = 3;
  ThreadPool pool(4);
  const SweepResult at_once = sweep(options_, {.pool = &pool});
  EXPECT_EQ(at_once.plain, one_by_one.plain);
  ASSERT_EQ(at_once.points.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(at_once.points[i].format, one_by_one.points[i].format);
    EXPECT_EQ(at_once.points[i].rounded, one_by_one.points[i].rounded);
    EXPECT_EQ(at_once.points[i].trained, one_by_one.points[i].trained);
  }
  // Jobs decide no result: the directory of the one is the other's, too.
  EXPECT_EQ(scratch_.read("side by side/results.json"), results);
  for (const char* const file : {"fixed-4-2", "fixed-8-4"})
    EXPECT_EQ(scratch_.read(fmt::format("side by side/{}/model.safetensors", file)),
              scratch_.read(fmt::format("sweep/{}/model.safetensors", file)));
}

TEST_F(SweepTest, GoesOnWhereRunsSideBySideWereStopped) {
  const SweepResult whole = sweep(options_, {});
  options_.settings.out = scratch_ / "parts";
  options_.settings.jobs = 2;
  int asked = 0;
  Callbacks callbacks;
  callbacks.should_stop = [&] { return ++asked > 20; };
  EXPECT_THROW(sweep(options_, {}, callbacks), Interrupted);
  options_.settings.resumes = true;
  options_.settings.jobs = 1;
  const SweepResult second = sweep(options_, {});
  for (std::size_t i = 0; i < whole.points.size(); ++i)
    EXPECT_EQ(second.points[i].trained, whole.points[i].trained);
}

TEST_F(SweepTest, GoesOnWithTheSameOptionsOnly) {
  sweep(options_, {});
  options_.settings.resumes = true;
  options_.quantize.weight_range = "minmax";
  EXPECT_EQ(error_text([&] { sweep(options_, {}); }),
            fmt::format("weight-range \"minmax\": the sweep in {} was started with \"mse\"",
                        options_.settings.out.string()));
}

TEST_F(SweepTest, SaysSizesAndWhatTrainingWon) {
  const SweepResult result = sweep(options_, {});
  EXPECT_EQ(result.num_measured, 8);
  EXPECT_GT(result.plain_bytes, 0);
  EXPECT_GT(result.points[1].bytes, result.points[0].bytes) << "8 bits take more than 4";
  EXPECT_TRUE(result.points[0].tokens_per_second.has_value());
  const report::Table table = sweep_table(result);
  EXPECT_THAT(table.headers(),
              testing::ElementsAre("w", "format", "bits", "PTQ", "PTQ - float", "QAT",
                                   "QAT - float", "QAT - PTQ", "size", "smaller", "tokens/s"));
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_EQ(table.rows()[0][1], "float");
  EXPECT_EQ(table.rows()[2][7],
            fmt::format("{:+.2f}", 100 * (*result.points[1].trained - result.points[1].rounded)));
}

TEST_F(SweepTest, TrainsForSeveralNumbersOfEpochs) {
  options_.formats = "fixed:{w},{w/2} w=8";
  options_.settings.epochs = {1, 2};
  const SweepResult result = sweep(options_, {});
  ASSERT_EQ(result.points.size(), 2u);
  EXPECT_EQ(result.points[0].epochs, 1);
  EXPECT_EQ(result.points[1].epochs, 2);
  EXPECT_EQ(result.points[0].rounded, result.points[1].rounded);
  EXPECT_THAT(scratch_.read("sweep/sweep.svg"), HasSubstr("Accuracy by epochs"));
}

// One run, measured on its way: the weights are those that a run of as many epochs ends with.
TEST_F(SweepTest, GivesAfterEachEpochWhatARunOfSoManyGives) {
  options_.formats = "fixed:{w},{w/2} w=8";
  options_.settings.epochs = {1, 3};
  const SweepResult both = sweep(options_, {});
  options_.settings.epochs = {3};
  options_.settings.out = scratch_ / "alone";
  const SweepResult alone = sweep(options_, {});
  EXPECT_EQ(both.points[1].trained, alone.points[0].trained);
  EXPECT_EQ(scratch_.read("sweep/fixed-8-4/model.safetensors"),
            scratch_.read("alone/fixed-8-4/model.safetensors"));
  // 32 rows in batches of 8: 12 steps in all, not 4 and then 12.
  const std::string log = scratch_.read("sweep/fixed-8-4/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(log, '\n'), 12);
}

TEST_F(SweepTest, GoesOnBetweenEpochs) {
  options_.formats = "fixed:{w},{w/2} w=8";
  options_.settings.epochs = {1, 2, 3};
  const SweepResult whole = sweep(options_, {});
  const std::string results = scratch_.read("sweep/results.json");
  options_.settings.out = scratch_ / "parts";
  int attempts = 1;
  for (int most = 6;; most += 6, ++attempts) {
    int asked = 0;
    Callbacks callbacks;
    callbacks.should_stop = [&] { return ++asked > most; };
    try {
      sweep(options_, {}, callbacks);
      break;
    } catch (const Interrupted&) {
      options_.settings.resumes = true;
    }
  }
  EXPECT_GT(attempts, 2);
  EXPECT_EQ(scratch_.read("parts/results.json"), results);
}

TEST_F(SweepTest, TakesFormatsOfWeightsAlone) {
  options_.formats = "int:{b},channel b=4,8";
  options_.settings.epochs = {0};
  std::vector<std::string> notices;
  Callbacks callbacks;
  callbacks.notice = [&](const std::string& line) { notices.push_back(line); };
  EXPECT_EQ(sweep(options_, {}, callbacks).points.size(), 2u);
  EXPECT_THAT(notices, testing::Contains(
                           "int:4,channel: is a format of weights alone; activations stay float"));
}

TEST(ParseEpochs, ReadsNumbersListsAndRanges) {
  using testing::ElementsAre;
  EXPECT_THAT(parse_epochs("2"), ElementsAre(2));
  EXPECT_THAT(parse_epochs("0,1,4"), ElementsAre(0, 1, 4));
  EXPECT_THAT(parse_epochs("1..4"), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(error_text([] { parse_epochs("-1"); }),
            "epochs -1: expected whole numbers, 0 to 1000: 1, 1,2,4 or 1..8");
  EXPECT_EQ(error_text([] { parse_epochs("4..1"); }),
            "epochs 4..1: holds no number; the smaller one comes first");
}

TEST_F(SweepTest, GivesFormatsItself) {
  options_.quantize.weights = "int:8";
  EXPECT_EQ(error_text([&] { sweep(options_, {}); }),
            "weights int:8: a sweep gives weights, biases and activations their format itself");
}

}  // namespace
}  // namespace lathe::experiment
