#include "lathe/search/fisher_information.h"

#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/experiment/read_data.h"
#include "lathe/train/answers.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"

namespace lathe::search {
namespace {

// One example's loss as a function of one weight: the gradient is what finite differences say, so
// the information of that example is its square.
TEST(FisherInformation, IsTheSquareOfAnExamplesGradient) {
  io::Model model = experiment::load_with_tokenizer(
      "bert-tiny", "", "reviews:train=8,test=8", {.task = "classify", .num_labels = 2, .seed = 1});
  model.fresh.clear();  // as if it was trained
  const data::Dataset all = experiment::read_examples(model, "reviews:train=8,test=8", "train", 1);
  const auto source = train::make_evaluation_source(model, all, {.length = 12}, nullptr);
  const FisherInformation information = fisher_information(model, *source, 1, {});
  const std::string layer = "classifier", weight = "classifier.weight";
  ASSERT_EQ(information.at(layer).size(), 256U);
  const auto loss_with = [&](std::size_t index, float change) {
    io::Model changed = model;
    changed.state.at(weight).mutable_data<float>()[index] += change;
    train::Classifier classifier(changed, {});
    return train::evaluate(classifier, *source, 2, {}).loss;
  };
  for (const std::size_t index : {std::size_t{3}, std::size_t{200}}) {
    constexpr float kStep = 0.05f;
    // Central differences of a smooth loss: off by about the square of the step.
    const double gradient = (loss_with(index, kStep) - loss_with(index, -kStep)) / (2 * kStep);
    EXPECT_NEAR(information.at(layer)[index], gradient * gradient,
                0.01 * gradient * gradient + 1e-8);
  }
  io::Model moved = model;
  moved.state.at(weight).mutable_data<float>()[3] += 0.5f;
  EXPECT_NEAR(fisher_damage(information, layer, model, moved), information.at(layer)[3] / 8, 1e-7);
  EXPECT_EQ(fisher_damage(information, layer, model, model), 0);
}

}  // namespace
}  // namespace lathe::search
