#include "lathe/train/hidden_distillation.h"

#include <gmock/gmock.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/train/testing/gradient_check.h"
#include "lathe/train/testing/taught_model.h"

namespace lathe::train {
namespace {

class HiddenDistillation : public TaughtModel {
 protected:
  // The mean squared difference of two states, over the tokens of each sequence and features,
  // summed over sequences; rows of sequences have one token each.
  double distance(const Tensor& a, const Tensor& b) const {
    const std::vector<std::int64_t> ends =
        a.dim(0) == 7 ? std::vector<std::int64_t>{4, 7} : std::vector<std::int64_t>{1, 2};
    double sum = 0;
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      double squares = 0;
      for (std::int64_t i = begin * a.dim(1); i < end * a.dim(1); ++i)
        squares += (a.at(i) - b.at(i)) * (a.at(i) - b.at(i));
      sum += squares / static_cast<double>((end - begin) * a.dim(1));
      begin = end;
    }
    return sum;
  }
  std::vector<Tensor> states_alone(const io::Model& model) const {
    const TransformerLayers layers = layers_of(model);
    std::vector<Value> wanted = layers.inputs;
    wanted.push_back(layers.chosen);
    return values(model, wanted);
  }
};

TEST_F(HiddenDistillation, IsTheMeanSquaredDifferenceOfTheStates) {
  const io::Model teacher = make_model(2, {});
  const std::vector<Tensor> own = states_alone(student_), given = states_alone(teacher);
  ASSERT_EQ(own.size(), 3u);
  double expected = 0;
  for (std::size_t i = 0; i < 3; ++i) expected += distance(own[i], given[i]) / 3;
  EXPECT_GT(expected, 0.5);
  // Sums of numbers of order 10 in float: some units of 2^-20.
  EXPECT_NEAR(added({.hidden = 0.5, .teachers = {&teacher}}), 0.5 * expected, 1e-5);
  EXPECT_THAT(states_.maps, testing::IsEmpty());
}

TEST_F(HiddenDistillation, MatchesLayersOfADeeperTeacherEvenly) {
  const io::Model teacher = make_model(2, {.layers = 4});
  const std::vector<Tensor> own = states_alone(student_), given = states_alone(teacher);
  const double expected =
      (distance(own[0], given[0]) + distance(own[1], given[2]) + distance(own[2], given[4])) / 3;
  EXPECT_NEAR(added({.hidden = 1, .teachers = {&teacher}}), expected, 1e-5);
}

TEST_F(HiddenDistillation, OfATwinIsNothing) {
  EXPECT_EQ(added({.hidden = 1, .teachers = {&student_}}), 0);
}

TEST_F(HiddenDistillation, OfSeveralTeachersIsTheMean) {
  const io::Model one = make_model(2, {}), two = make_model(3, {});
  const double first = added({.hidden = 1, .teachers = {&one}});
  const double second = added({.hidden = 1, .teachers = {&two}});
  EXPECT_NEAR(added({.hidden = 1, .teachers = {&one, &two}}), (first + second) / 2, 1e-5);
}

// What is added up over batches must not depend on how they were cut.
TEST_F(HiddenDistillation, AddsUpOverSequences) {
  const io::Model teacher = make_model(2, {});
  const DistillationOptions options{.hidden = 1, .teachers = {&teacher}};
  const double together = added(options);
  Feed first = feed_, second = feed_;
  first["input_ids"] = Tensor::from<std::int32_t>({4}, {2, 7, 3, 10});
  first["offsets"] = Tensor::from<std::int32_t>({2}, {0, 4});
  first["labels"] = Tensor::from<std::int32_t>({1}, {1});
  second["input_ids"] = Tensor::from<std::int32_t>({3}, {2, 9, 4});
  second["offsets"] = Tensor::from<std::int32_t>({2}, {0, 3});
  second["labels"] = Tensor::from<std::int32_t>({1}, {0});
  EXPECT_NEAR(added(options, first) + added(options, second), together, 1e-5);
}

TEST_F(HiddenDistillation, HasTheGradientOfItsLoss) {
  const io::Model teacher = make_model(2, {.layers = 3});
  const Graph graph = taught({.hidden = 0.7, .teachers = {&teacher}});
  GradientCheck check(graph, state_, feed_);
  check.expect_gradient("bert.encoder.layer.0.attention.self.value.weight", 3);
  check.expect_gradient("bert.embeddings.word_embeddings.weight", 3);
}

TEST_F(HiddenDistillation, LearnsAMapToAWiderTeacher) {
  const io::Model teacher = make_model(2, {.width = 12});
  const Graph graph = taught({.hidden = 0.7, .teachers = {&teacher}});
  EXPECT_THAT(states_.maps,
              testing::ElementsAre("distillation.map.hidden.0.0", "distillation.map.hidden.0.1",
                                   "distillation.map.hidden.0.2"));
  EXPECT_EQ(state_.at(states_.maps[0]).dims(), (std::vector<std::int64_t>{12, 8}));
  GradientCheck check(graph, state_, feed_);
  check.expect_gradient(states_.maps[1], 3);
  check.expect_gradient("bert.encoder.layer.0.attention.self.value.weight", 5);
}

}  // namespace
}  // namespace lathe::train
