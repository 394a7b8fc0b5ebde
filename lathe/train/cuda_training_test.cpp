// Training on a GPU beside training on the CPU: the real BERT-tiny with a small vocabulary, dropout
// and clipping.

#include <gtest/gtest.h>

#include "lathe/engine/backend.h"
#include "lathe/engine/cuda/cuda_plan.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/train/testing/opinions.h"
#include "lathe/train/train_model.h"

namespace lathe::train {
namespace {

struct Training {
  std::vector<double> losses;
  State state;
};

// Twenty steps of four examples.
Training train_on(const std::string& device, OptimizerKind optimizer, double rate) {
  TrainOptions options;
  options.execution.device = device;
  options.graph.optimizer = optimizer;
  options.trainer.epochs = 2;
  options.trainer.batch_examples = 4;
  options.trainer.learning_rate = rate;
  Training run;
  TrainCallbacks callbacks;
  callbacks.step = [&](const StepReport& report) { run.losses.push_back(report.loss); };
  run.state =
      train_model(bert_tiny_of_twenty_words(), opinions(40), {}, options, callbacks).result.state;
  return run;
}

void expect_alike(OptimizerKind optimizer, double rate) {
  const Training gpu = train_on("cuda", optimizer, rate);
  ASSERT_EQ(gpu.losses.size(), 20u);
  const Training cpu = train_on("cpu", optimizer, rate);
  ASSERT_EQ(cpu.losses.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_NEAR(gpu.losses[i], cpu.losses[i], 1e-3) << "step " << i + 1;
  EXPECT_NE(gpu.losses.front(), gpu.losses.back());
  // The same seed, the same bits.
  const Training again = train_on("cuda", optimizer, rate);
  EXPECT_EQ(again.losses, gpu.losses);
  engine::expect_identical(again.state, gpu.state);
}

TEST(CudaTraining, FollowsTheCpuWithGradientDescent) {
  LATHE_NEEDS_GPU();
  expect_alike(OptimizerKind::Sgd, 1e-2);
}

// Adam divides by the size of a gradient, so that what should be zero moves a weight by the rate:
// the losses stay near each other, the weights need not.
TEST(CudaTraining, FollowsTheCpuWithAdam) {
  LATHE_NEEDS_GPU();
  expect_alike(OptimizerKind::AdamW, 1e-4);
}

// The whole step of the supported model has kernels; this needs no GPU.
TEST(CudaTraining, HasAKernelForEveryOpOfBert) {
  State state = bert_tiny_of_twenty_words().state;
  const TrainingGraph training = make_training_graph(bert_tiny_of_twenty_words(), {}, state);
  const std::map<std::string, int> missing =
      engine::count_fallbacks(training.graph, engine::find_backend("cuda"));
  for (const auto& [op, count] : missing) ADD_FAILURE() << op << ": " << count;
}

// Every launch costs two microseconds and more, so their number is kept in sight; batches of any
// tokens and sequences share captures.
TEST(CudaTraining, PlansAStepOfBertTinyInFewLaunches) {
  State state = bert_tiny_of_twenty_words().state;
  const TrainingGraph training = make_training_graph(bert_tiny_of_twenty_words(), {}, state);
  const engine::CudaPlan plan =
      engine::make_cuda_plan(engine::lower(training.graph, engine::find_backend("cuda")));
  EXPECT_EQ(plan.rounded_symbols, (std::vector<std::string>{"S", "T"}));
  EXPECT_TRUE(plan.late_updates.empty());
  EXPECT_LE(plan.launches.size(), 50u);
}

}  // namespace
}  // namespace lathe::train
