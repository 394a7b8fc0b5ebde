#include "lathe/train/distillation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/answers.h"
#include "lathe/train/make_source.h"
#include "lathe/train/testing/gradient_check.h"
#include "lathe/train/training_feed.h"
#include "lathe/train/training_graph.h"

namespace lathe::train {
namespace {

class Distillation : public testing::Test {
 protected:
  Distillation() {
    feed_["input_ids"] = Tensor::from<std::int32_t>({7}, {2, 7, 12, 3, 2, 9, 3});
    feed_["offsets"] = Tensor::from<std::int32_t>({3}, {0, 4, 7});
    feed_["labels"] = Tensor::from<std::int32_t>({2}, {1, 0});
    feed_["soft_labels"] = Tensor::from<float>({2, 2}, {0.25f, 0.75f, 0.875f, 0.125f});
  }

  // The model's graph as a source feeds it, with the loss to be taught by.
  Graph taught(const DistillationOptions& options) const {
    Graph graph = student_.graph;
    pack_inputs(graph, student_);
    run_pass("remove-dropout", graph);
    State none;
    add_distillation(graph, none, options);
    return graph;
  }

  double loss_sum(Graph graph) const {
    const Loss loss = find_loss(graph);
    for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
    graph.set_output("sum", loss.sum);
    graph.set_output("count", loss.count);
    const Feed results =
        engine::make_executor(graph, student_.state, {.device = "reference"})->run(feed_);
    EXPECT_EQ(results.at("count").at(0), 2);
    return results.at("sum").at(0);
  }

  Tensor logits() const {
    Classifier classifier(student_, {.execution = {.device = "reference"}});
    return classifier.logits(feed_);
  }

  io::ScratchDirectory scratch_;
  io::Model student_ = io::load_model(io::write_tiny_bert(scratch_, "m"),
                                      {.inputs = {"input_ids", "attention_mask", "labels"}});
  Feed feed_;
};

TEST_F(Distillation, LeavesTheLossAloneWithoutSoftLabels) {
  const Graph plain = taught({});
  EXPECT_FALSE(plain.find("soft_labels"));
  EXPECT_NEAR(loss_sum(taught({.has_soft_labels = true, .weight = 0})), loss_sum(plain), 1e-6);
}

TEST_F(Distillation, AddsTheCrossEntropyWithTheSoftLabelsAtTheTemperature) {
  const Tensor rows = logits();
  const std::vector<double> soft{0.25, 0.75, 0.875, 0.125};
  double labels = 0, teachers = 0;
  for (std::size_t row = 0; row < 2; ++row) {
    const auto values = rows.data<float>().subspan(2 * row, 2);
    const std::size_t label = 1 - row;
    labels -= std::log(softmax(values)[label]);
    for (std::size_t i = 0; i < 2; ++i)
      teachers -= 9 * soft[2 * row + i] * std::log(softmax(values, 3)[i]);
  }
  // Sums of a few numbers of order 1 to 10, each rounded to float once or twice.
  EXPECT_NEAR(loss_sum(taught({.has_soft_labels = true, .weight = 1, .temperature = 3})), teachers,
              2e-5);
  EXPECT_NEAR(loss_sum(taught({.has_soft_labels = true, .weight = 0.25, .temperature = 3})),
              0.75 * labels + 0.25 * teachers, 2e-5);
}

TEST_F(Distillation, NeedsNoLabelsWhereTeachersAnswer) {
  const DistillationOptions options{.has_soft_labels = true, .weight = 0.5};
  const double labelled = loss_sum(taught(options));
  const std::vector<double> first = softmax(logits().data<float>().first(2));
  feed_["labels"] = Tensor::from<std::int32_t>({2}, {kIgnoredLabel, 0});
  // The first example counts (loss_sum looks at that) by its soft label alone.
  EXPECT_NEAR(loss_sum(taught(options)), labelled + 0.5 * std::log(first[1]), 2e-5);
}

TEST_F(Distillation, HasTheGradientOfItsLoss) {
  GradientCheck check(taught({.has_soft_labels = true, .weight = 0.75, .temperature = 2}),
                      student_.state, feed_);
  check.expect_gradient("classifier.weight");
  check.expect_gradient("bert.encoder.layer.0.attention.self.query.weight", 5);
}

TEST_F(Distillation, RefusesWeightsAndTemperaturesThatMakeNoSense) {
  EXPECT_EQ(error_text([&] { taught({.has_soft_labels = true, .weight = 1.5}); }),
            "teacher-weight 1.5: expected 0 to 1");
  EXPECT_EQ(error_text([&] { taught({.has_soft_labels = true, .temperature = 0}); }),
            "temperature 0: expected a number above 0");
}

}  // namespace
}  // namespace lathe::train
