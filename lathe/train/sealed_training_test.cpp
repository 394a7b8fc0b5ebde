// The engine's interface to backends, shown by a second one whose memory the host cannot read:
// training goes through copies that somebody asked for, or it ends in a fault.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/engine/testing/sealed_backend.h"
#include "lathe/train/testing/opinions.h"
#include "lathe/train/train_model.h"

namespace lathe::train {
namespace {

const Register registration{engine::sealed_backend()};

struct Training {
  std::vector<double> losses;
  State state;
};

// Four steps of the real BERT-tiny, dropout and all. Plain gradient descent: Adam divides by the
// size of a gradient, which makes a large step of the last bits of a gradient that should be zero.
Training train_on(const std::string& device) {
  TrainOptions options;
  options.execution.device = device;
  options.graph.optimizer = OptimizerKind::Sgd;
  options.trainer.epochs = 1;
  options.trainer.batch_examples = 4;
  options.trainer.learning_rate = 1e-2;
  Training run;
  TrainCallbacks callbacks;
  callbacks.step = [&](const StepReport& report) { run.losses.push_back(report.loss); };
  run.state =
      train_model(bert_tiny_of_twenty_words(), opinions(16), {}, options, callbacks).result.state;
  return run;
}

TEST(SealedBackend, TrainsBertTinyAsTheReferenceAndTheCpuDo) {
  const Training sealed = train_on("sealed");
  ASSERT_EQ(sealed.losses.size(), 4u);

  // The same definitions in the same order, so the same bits.
  const Training reference = train_on("reference");
  EXPECT_EQ(sealed.losses, reference.losses);
  engine::expect_identical(sealed.state, reference.state);

  // The CPU sums in float32: a loss is some thousand roundings of 6e-8 deep, most of which cancel,
  // and each step moves a weight by a hundredth of a gradient that differs as little.
  const Training cpu = train_on("cpu");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(sealed.losses[i], cpu.losses[i], 1e-5);
  engine::expect_near(sealed.state, cpu.state, 1e-5);
  EXPECT_NE(sealed.losses.front(), sealed.losses.back());
}

TEST(SealedBackend, CopiesStatesBackOnlyWhenTheRunIsOver) {
  const engine::SealedTraffic before = engine::sealed_traffic;
  train_on("sealed");
  EXPECT_EQ(engine::sealed_traffic.runs - before.runs, 4);
  EXPECT_EQ(engine::sealed_traffic.state_copies - before.state_copies, 1);
}

class SealedLinear : public testing::Test {
 protected:
  const Graph graph_ = parse_graph(R"(
    x = input() : f32[B,2]
    w = state() : f32[2,2]
    h = linear(x, w)
    a = relu(h)
    k = linear(a, w)
    y = add(k, x)
    output y <- y
  )");
  const State state_{{"w", Tensor::from<float>({2, 2}, {1, 2, 3, 4})}};
  engine::SealedExecutor executor_{graph_, state_, engine::find_backend("sealed")};
};
using SealedLinearDeathTest = SealedLinear;

// What is fused is this backend's to say: the residual is, the activation is not.
TEST_F(SealedLinear, FusesWhatItsOwnBackendCanRun) {
  std::vector<std::string> ops;
  for (const engine::PlannedStep& step : executor_.report().steps) ops.push_back(step.op);
  EXPECT_THAT(ops, testing::ElementsAre("linear", "relu", "fused_linear"));
  const Feed feed = engine::random_feed(graph_, {{"B", 3}}, 1);
  engine::expect_identical(
      executor_.run(feed),
      engine::make_executor(graph_, state_, {.device = "reference"})->run(feed));
}

TEST_F(SealedLinear, TakesNewStatesByCopy) {
  const State other{{"w", Tensor::from<float>({2, 2}, {0, 1, 1, 0})}};
  executor_.set_state(other);
  EXPECT_TRUE(identical(executor_.state().at("w"), other.at("w")));
  EXPECT_EQ(error_text([&] {
              executor_.set_state({{"v", other.at("w")}});
            }),
            "tensor \"v\" is no state of the graph");
}

TEST_F(SealedLinearDeathTest, FaultsWhenTheHostReadsAState) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const volatile std::byte* const place = executor_.place_of_state("w");
        [[maybe_unused]] const std::byte stolen = *place;
      },
      "");
}

}  // namespace
}  // namespace lathe::train
