#include "lathe/train/teacher_copy.h"

#include <gmock/gmock.h>

#include "lathe/core/role.h"
#include "lathe/engine/backend.h"
#include "lathe/train/testing/taught_model.h"
#include "lathe/train/training_graph.h"

namespace lathe::train {
namespace {

using TeacherCopy = TaughtModel;

TEST_F(TeacherCopy, ComputesWhatTheTeacherComputesBitForBit) {
  const io::Model teacher = make_model(2, {.width = 12, .layers = 3});
  Graph graph = packed(student_);
  State state = student_.state;
  std::vector<std::string> states;
  const TransformerLayers layers = copy_teacher(graph, state, teacher, "teacher.0.", states);
  for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
  graph.set_output("chosen", layers.chosen);
  graph.set_output("last", layers.inputs.back());
  const TransformerLayers alone = layers_of(teacher);
  Graph own = packed(teacher);
  for (const auto& [name, value] : std::vector(own.outputs())) own.remove_output(name);
  own.set_output("chosen", alone.chosen);
  own.set_output("last", alone.inputs.back());
  const Feed copied = engine::make_executor(graph, state)->run(feed_);
  const Feed expected = engine::make_executor(own, teacher.state)->run(feed_);
  EXPECT_TRUE(identical(copied.at("chosen"), expected.at("chosen")));
  EXPECT_TRUE(identical(copied.at("last"), expected.at("last")));
}

TEST_F(TeacherCopy, LeavesTheHeadAndEverythingThatLearnsBehind) {
  const io::Model teacher = make_model(2, {});
  Graph graph = packed(student_);
  State state = student_.state;
  std::vector<std::string> states;
  copy_teacher(graph, state, teacher, "teacher.0.", states);
  EXPECT_THAT(states, testing::Not(testing::Contains(testing::HasSubstr("classifier"))));
  EXPECT_THAT(states, testing::Not(testing::Contains(testing::HasSubstr("pooler"))));
  for (const std::string& name : states)
    EXPECT_EQ(state_role(graph, graph.at(name)), StateRole::Buffer) << name;
}

TEST_F(TeacherCopy, IsNotTrainedButItsMapsAre) {
  const io::Model teacher = make_model(2, {.width = 12, .heads = 3});
  TrainingGraphOptions options;
  options.train_only = {"classifier.bias"};
  options.distillation = {.hidden = 1, .attention = 1, .teachers = {&teacher}};
  State state = student_.state;
  const TrainingGraph training = make_training_graph(student_, options, state);
  EXPECT_THAT(training.trained, testing::UnorderedElementsAre(
                                    "classifier.bias", "distillation.map.hidden.0.0",
                                    "distillation.map.hidden.0.1", "distillation.map.hidden.0.2"));
  EXPECT_FALSE(training.teachers.empty());
  const auto executor = engine::make_executor(training.graph, state);
  feed_["learning_rate"] = Tensor::from<float>({}, {0.01f});
  executor->run(feed_);
  const State after = executor->state();
  for (const std::string& name : training.teachers)
    EXPECT_TRUE(identical(after.at(name), state.at(name))) << name;
  for (const std::string& name : training.trained)
    EXPECT_FALSE(identical(after.at(name), state.at(name))) << name;
}

TEST_F(TeacherCopy, DoesNotSlowStepsDownByReferenceKernels) {
  const io::Model teacher = make_model(2, {.width = 12, .heads = 3});
  const auto fallbacks = [&](const DistillationOptions& distillation) {
    TrainingGraphOptions options;
    options.distillation = distillation;
    State state = student_.state;
    return engine::count_fallbacks(make_training_graph(student_, options, state).graph,
                                   engine::find_backend("cpu"));
  };
  EXPECT_THAT(fallbacks({.has_soft_labels = true,
                         .hidden = 1,
                         .attention = 1,
                         .teachers = {&teacher, &student_}}),
              testing::ContainerEq(fallbacks({})));
}

}  // namespace
}  // namespace lathe::train
