// Models that are pruned while they train.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/core/role.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/experiment/fine_tune_run.h"
#include "lathe/experiment/testing/tiny_training.h"
#include "lathe/io/model.h"

namespace lathe::experiment {
namespace {

using testing::HasSubstr;

struct Count {
  std::int64_t elements = 0, masked = 0;
};

// The elements of all masked weights, and how many a mask takes out; every one of those is zero in
// the weight as well.
Count count(const io::Model& model) {
  Count result;
  for (const auto& [name, mask] : compress::find_masks(model.graph, model.state)) {
    const std::span<const float> keeps = mask.data<float>();
    const std::span<const float> weight = model.state.at(name).data<float>();
    for (std::size_t i = 0; i < keeps.size(); ++i) {
      ++result.elements;
      if (keeps[i] != 0) continue;
      ++result.masked;
      EXPECT_EQ(weight[i], 0.0f) << name << " " << i;
    }
  }
  return result;
}

class PrunedTraining : public TinyTraining {
 protected:
  PrunedTraining() { options_.trainer.epochs = 8; }
};

TEST_F(PrunedTraining, EndsWithTheSparsityThatWasAskedFor) {
  for (const std::string method : {"l1", "random", "movement"})
    for (const auto optimizer : {train::OptimizerKind::AdamW, train::OptimizerKind::Sgd}) {
      SCOPED_TRACE(method);
      options_.prune = "sparsity=0.8,scope=global,method=" + method;
      options_.graph.optimizer = optimizer;
      const Count found = count(run().model);
      EXPECT_GT(found.elements, 0);
      EXPECT_EQ(found.masked, std::llround(0.8 * static_cast<double>(found.elements)));
    }
}

TEST_F(PrunedTraining, PrunesGranulesOfEveryKind) {
  for (const std::string granularity : {"2:4", "4x4", "row", "neuron"}) {
    SCOPED_TRACE(granularity);
    options_.prune = "sparsity=0.5,scope=local,granularity=" + granularity;
    const Count found = count(run().model);
    EXPECT_EQ(2 * found.masked, found.elements);
  }
}

TEST_F(PrunedTraining, GoesOnToTheSameBits) {
  options_.prune = "sparsity=0.7,method=movement,end=0.5,every=3";
  options_.out = scratch_ / "whole";
  const FineTuned whole = run();
  for (const int stop : {4, 11, 25}) {
    options_.out = scratch_ / ("parts" + std::to_string(stop));
    int steps = 0;
    callbacks_.step = [&](const train::StepReport&) { ++steps; };
    callbacks_.should_stop = [&] { return steps >= stop; };
    EXPECT_EQ(run().training.ending, train::Ending::Interrupted);
    FineTuneOptions resumed;
    resumed.out = options_.out;
    resumed.resumes = true;
    ASSERT_TRUE(take_up_run(resumed, {}));
    const FineTuned second = fine_tune(resumed, {});
    for (const auto& [name, tensor] : whole.model.state)
      EXPECT_TRUE(identical(second.model.state.at(name), tensor)) << name;
  }
}

// Before pruning ends a model is the better the less is gone: such weights are not the result.
TEST_F(PrunedTraining, ChoosesAmongFullyPrunedWeightsOnly) {
  options_.prune = "sparsity=0.9,end=0.9";
  options_.validation = 8;
  options_.trainer.validate_every = 3;
  const FineTuned result = run();
  const Count found = count(result.model);
  EXPECT_EQ(found.masked, std::llround(0.9 * static_cast<double>(found.elements)));
  EXPECT_GT(result.training.progress.best_step, 28);  // 0.9 of 32 steps
}

TEST_F(PrunedTraining, SurvivesSavingAndTrainingOn) {
  options_.prune = "sparsity=0.7";
  options_.out = scratch_ / "pruned";
  const Count first = count(run().model);
  const io::Model saved = io::load_model(options_.out, {.task = "classify"});
  EXPECT_EQ(count(saved).masked, first.masked);
  options_.model = options_.out.string();
  options_.prune = {};
  options_.out = scratch_ / "again";
  const Count second = count(run().model);
  EXPECT_EQ(second.masked, first.masked);
  EXPECT_EQ(second.elements, first.elements);
}

TEST_F(PrunedTraining, RefusesWhatCannotBe) {
  options_.prune = "method=l1";
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("sparsity: is missing"));
  options_.prune = "sparsity=0.5,method=wanda";
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("expected l1, lamp, movement or random"));
  options_.prune = "sparsity=0.5";
  options_.lora = "rank=2";
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("prune: with lora"));
}

}  // namespace
}  // namespace lathe::experiment
