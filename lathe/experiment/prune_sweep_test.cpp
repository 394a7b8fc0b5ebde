#include "lathe/experiment/prune_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/compress/packed_weights.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/quantize.h"
#include "lathe/experiment/testing/opinions.h"

namespace lathe::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseSparsities, CountsTenthsOrReadsAList) {
  EXPECT_THAT(parse_sparsities("0.1..0.4"), ElementsAre(0.1, 0.2, 0.3, 0.4));
  EXPECT_EQ(parse_sparsities("0.1..0.9").size(), 9u);
  EXPECT_THAT(parse_sparsities("0.5,0.95"), ElementsAre(0.5, 0.95));
  EXPECT_EQ(error_text([] { parse_sparsities("0.5,1.5"); }),
            "\"1.5\": expected sparsities, 0 to 1: 0.1..0.9 or 0.5,0.7");
  EXPECT_EQ(error_text([] { parse_sparsities("0.9..0.1"); }), "\"0.9..0.1\": holds no sparsity");
}

class PruneSweepTest : public testing::Test {
 protected:
  PruneSweepTest() {
    options_.settings.model = io::write_tiny_bert(scratch_, "m");
    options_.settings.data = write_opinions(scratch_, "data");
    options_.settings.batch_size = 8;
    options_.settings.out = scratch_ / "sweep";
    options_.sparsities = "0.5,0.75";
  }

  io::ScratchDirectory scratch_;
  PruneSweepOptions options_;
};

TEST_F(PruneSweepTest, MeasuresEachMethodBesideAControl) {
  const PruneSweepResult result = prune_sweep(options_, {});
  EXPECT_EQ(result.measured_on, "8 rows held out of train");
  ASSERT_EQ(result.points.size(), 4u);
  EXPECT_EQ(result.points[0].method, "random");
  EXPECT_EQ(result.points[1].method, "l1");
  EXPECT_TRUE(result.controls.contains(1));
  EXPECT_TRUE(result.points[3].trained.has_value());
  EXPECT_THAT(prune_sweep_table(result).headers(),
              ElementsAre("sparsity", "method", "before", "after", "after - before",
                          "after - control", "size", "smaller", "tokens/s"));
  EXPECT_EQ(prune_sweep_table(result).rows().size(), 5u);
  EXPECT_LT(result.points[3].bytes, result.points[1].bytes) << "0.75 takes less than 0.5";
  EXPECT_TRUE(result.points[0].tokens_per_second.has_value());
  EXPECT_THAT(scratch_.read("sweep/table.md"), HasSubstr("8 rows held out of train"));
  EXPECT_THAT(scratch_.read("sweep/sweep.svg"), HasSubstr("8 rows held out of train"));
  // What was trained is a model with the asked number of zeros.
  const io::Model trained = io::load_model((scratch_ / "sweep" / "l1-0.75").string());
  EXPECT_EQ(std::ranges::count(trained.state.at("bert.pooler.dense.weight").data<float>(), 0.0f),
            48);
}

TEST_F(PruneSweepTest, GoesOnWhereItWasStopped) {
  const PruneSweepResult whole = prune_sweep(options_, {});
  options_.settings.out = scratch_ / "parts";
  for (int most = 5;; most += 10) {
    int asked = 0;
    Callbacks callbacks;
    callbacks.should_stop = [&] { return ++asked > most; };
    try {
      const PruneSweepResult result = prune_sweep(options_, {}, callbacks);
      EXPECT_EQ(result.controls, whole.controls);
      for (std::size_t i = 0; i < whole.points.size(); ++i) {
        EXPECT_EQ(result.points[i].pruned, whole.points[i].pruned);
        EXPECT_EQ(result.points[i].trained, whole.points[i].trained);
      }
      break;
    } catch (const Interrupted&) {
      options_.settings.resumes = true;
    }
  }
  EXPECT_TRUE(options_.settings.resumes);
}

TEST_F(PruneSweepTest, DrawsAgainstEpochsOfOneRun) {
  options_.sparsities = "0.5";
  options_.methods = {"l1"};
  options_.settings.epochs = {0, 1, 2};
  const PruneSweepResult result = prune_sweep(options_, {});
  ASSERT_EQ(result.points.size(), 3u);
  EXPECT_FALSE(result.points[0].trained.has_value());
  EXPECT_TRUE(result.points[2].trained.has_value());
  EXPECT_EQ(result.controls.size(), 2u);
  EXPECT_THAT(scratch_.read("sweep/sweep.svg"), HasSubstr("Accuracy by epochs"));
  options_.settings.epochs = {2};
  options_.settings.out = scratch_ / "alone";
  EXPECT_EQ(prune_sweep(options_, {}).points[0].trained, result.points[2].trained);
}

TEST_F(PruneSweepTest, KeepsAQuantizedModelQuantized) {
  io::Model model = io::load_model(options_.settings.model);
  model = quantize(model, {.weights = "int:4,channel"}, nullptr, {}).model;
  compress::pack_model(model);
  io::write_checkpoint(scratch_ / "q", model);
  options_.settings.model = (scratch_ / "q").string();
  options_.sparsities = "0.5";
  prune_sweep(options_, {});
  const io::Model trained = io::load_model((scratch_ / "sweep" / "l1-0.5").string());
  EXPECT_EQ(trained.graph.nodes_of("decode").size(), 8u);
  EXPECT_EQ(trained.graph.nodes_of("mul").size(), 8u);
}

TEST_F(PruneSweepTest, RefusesWhatItDecidesItself) {
  options_.prune.sparsity = 0.5;
  EXPECT_EQ(error_text([&] { prune_sweep(options_, {}); }),
            "sparsity 0.5: a sweep gives sparsities itself");
  options_.prune.sparsity.reset();
  options_.methods = {"l1", "l3"};
  EXPECT_THAT(error_text([&] { prune_sweep(options_, {}); }), HasSubstr("unknown method \"l3\""));
}

}  // namespace
}  // namespace lathe::experiment
