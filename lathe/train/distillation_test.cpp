#include "lathe/train/distillation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/train/training_graph.h"

namespace lathe::train {
namespace {

io::Model small_model(std::uint64_t seed) {
  return io::load_model("bert-tiny", {.task = "classify",
                                      .config = {{"vocab_size", std::int64_t{11}},
                                                 {"hidden_size", std::int64_t{8}},
                                                 {"num_hidden_layers", std::int64_t{1}},
                                                 {"num_attention_heads", std::int64_t{2}},
                                                 {"intermediate_size", std::int64_t{16}},
                                                 {"max_position_embeddings", std::int64_t{6}}},
                                      .seed = seed});
}

Feed batch() {
  Feed feed;
  feed["input_ids"] = Tensor::from<std::int32_t>({5}, {2, 7, 3, 2, 9});
  feed["offsets"] = Tensor::from<std::int32_t>({3}, {0, 3, 5});
  feed["labels"] = Tensor::from<std::int32_t>({2}, {1, 0});
  feed["learning_rate"] = Tensor::from<float>({}, {0.01f});
  feed["random"] = Tensor::from<std::int32_t>({3}, {0, 0, 1});
  return feed;
}

double step_loss(const io::Model& student, const DistillationOptions& distillation, State& after) {
  State state = student.state;
  TrainingGraphOptions options;
  options.dropout = false;
  options.distillation = distillation;
  const TrainingGraph training = make_training_graph(student, options, state);
  for (const std::string& name : training.trained) EXPECT_FALSE(name.starts_with("teacher."));
  const auto executor = engine::make_executor(training.graph, state, {.device = "reference"});
  const double loss = executor->run(batch()).at("loss_sum").at(0);
  after = executor->state();
  return loss;
}

TEST(Distillation, LeavesTheLabelsLossWhereTheTeacherHasNoWeight) {
  const io::Model student = small_model(1), teacher = small_model(2);
  State plain, taught;
  const double alone = step_loss(student, {}, plain);
  EXPECT_NEAR(step_loss(student, {.teacher = &teacher, .weight = 0}, taught), alone, 1e-6);
  for (const auto& [name, tensor] : student.state)
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      ASSERT_NEAR(taught.at(name).at(i), plain.at(name).at(i), 1e-6) << name;
}

TEST(Distillation, IsTheTeachersEntropyWhereBothAgreeAndLeavesTheTeacherAlone) {
  const io::Model student = small_model(1);
  State after;
  const double loss =
      step_loss(student, {.teacher = &student, .weight = 1, .temperature = 2}, after);
  // Cross-entropy with itself: two sequences, temperature squared, at most log 2 each.
  EXPECT_GT(loss, 0);
  EXPECT_LE(loss, 2 * 4 * std::log(2.0) + 1e-6);
  for (const auto& [name, tensor] : after) {
    if (!name.starts_with("teacher.")) continue;
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      ASSERT_EQ(tensor.at(i), student.state.at(name.substr(8)).at(i)) << name;
  }
}

TEST(Distillation, BringsTheStudentNearerToTheTeacher) {
  io::Model student = small_model(1);
  io::Model teacher = small_model(2);
  teacher.state.at("classifier.bias") = Tensor::from<float>({2}, {3, -3});  // of a firm opinion
  const DistillationOptions options{.teacher = &teacher, .weight = 1, .temperature = 1};
  State after;
  const double before = step_loss(student, options, after);
  for (int step = 0; step < 5; ++step) {
    for (auto& [name, tensor] : student.state) tensor = after.at(name);
    step_loss(student, options, after);
  }
  for (auto& [name, tensor] : student.state) tensor = after.at(name);
  EXPECT_LT(step_loss(student, options, after), before);
}

}  // namespace
}  // namespace lathe::train
