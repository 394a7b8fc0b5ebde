#include "lathe/train/training_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::train {
namespace {

using testing::ElementsAre;

class TrainingCheckpointTest : public testing::Test {
 protected:
  TrainingCheckpointTest() { std::filesystem::create_directory(checkpoints_); }

  // The model's states with the step added to one of them, and one moment.
  State state_at(std::int64_t step) const {
    State state = model_.state;
    state.at("classifier.bias").mutable_data<float>()[0] = static_cast<float>(step);
    state["optimizer.m.classifier.bias"] =
        Tensor::from<float>({2}, {static_cast<float>(step), 0.5f});
    return state;
  }
  void write(std::int64_t step) const {
    write_training_checkpoint(checkpoints_, model_, state_at(step), progress_at(step),
                              {{"lr", 0.001}});
  }
  static TrainingProgress progress_at(std::int64_t step) {
    return {.step = step,
            .epoch = 2,
            .batch = 5,
            .tokens = 1000,
            .epoch_loss_sum = 0.1,
            .epoch_loss_count = 3,
            .best_score = 1.0 / 3,
            .best_step = 4,
            .num_worse = 1};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints_))
      result.push_back(entry.path().filename().string());
    std::sort(result.begin(), result.end());
    return result;
  }
  void damage(const std::string& file) const {
    std::fstream stream(checkpoints_ / file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-1, std::ios::end);
    stream.put('\x55');
  }

  io::ScratchDirectory scratch_;
  io::Model model_ = io::load_model(io::write_tiny_bert(scratch_, "m"));
  std::filesystem::path checkpoints_ = scratch_ / "checkpoints";
};

TEST_F(TrainingCheckpointTest, ComesBackBitForBit) {
  write(7);
  std::vector<std::string> skipped;
  const std::optional<TrainingCheckpoint> read = read_newest_checkpoint(checkpoints_, skipped);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->progress, progress_at(7));
  EXPECT_EQ(read->configuration, (nlohmann::json{{"lr", 0.001}}));
  const State expected = state_at(7);
  ASSERT_EQ(read->state.size(), expected.size());
  for (const auto& [name, tensor] : expected)
    EXPECT_TRUE(identical(read->state.at(name), tensor)) << name;
  EXPECT_TRUE(skipped.empty());
  EXPECT_THAT(names(), ElementsAre("latest", "step-7"));
}

TEST_F(TrainingCheckpointTest, IsAModelDirectory) {
  write(7);
  const io::Model model = io::load_model((checkpoints_ / "step-7").string());
  EXPECT_EQ(model.task, "classify");
  EXPECT_EQ(model.state.at("classifier.bias").at(0), 7.0);
  EXPECT_TRUE(model.fresh.empty());
  EXPECT_TRUE(std::filesystem::exists(checkpoints_ / "step-7" / "vocab.txt"));
}

TEST_F(TrainingCheckpointTest, IsPassedOverWhenAFileWasAltered) {
  write(9);
  write(10);
  damage("step-10/optimizer.safetensors");
  std::vector<std::string> skipped;
  EXPECT_EQ(read_newest_checkpoint(checkpoints_, skipped)->progress.step, 9);
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0], (checkpoints_ / "step-10/optimizer.safetensors").string() +
                            ": its SHA-256 differs from the manifest's: the file was altered");

  damage("step-9/model.safetensors");
  skipped.clear();
  EXPECT_THAT(io::refusal("", [&] { read_newest_checkpoint(checkpoints_, skipped); }),
              testing::HasSubstr("none of the checkpoints is whole; the newest: "));
}

TEST_F(TrainingCheckpointTest, IsPassedOverWhileItIsWrittenOrRemoved) {
  write(3);
  std::filesystem::copy(checkpoints_ / "step-3", checkpoints_ / "step-8.tmp-1");
  std::filesystem::copy(checkpoints_ / "step-3", checkpoints_ / "step-2.trash-1");
  std::vector<std::string> skipped;
  EXPECT_EQ(read_newest_checkpoint(checkpoints_, skipped)->progress.step, 3);
  remove_old_checkpoints(checkpoints_, 2, 0);
  EXPECT_THAT(names(), ElementsAre("latest", "step-3"));
}

TEST_F(TrainingCheckpointTest, ReplacesADamagedOneOfItsStep) {
  write(3);
  damage("step-3/model.safetensors");
  write(3);
  std::vector<std::string> skipped;
  EXPECT_TRUE(read_newest_checkpoint(checkpoints_, skipped));
  EXPECT_THAT(names(), ElementsAre("latest", "step-3"));
}

TEST_F(TrainingCheckpointTest, KeepsTheNewestTwoAndTheBest) {
  for (const std::int64_t step : {2, 9, 10, 4}) write(step);
  remove_old_checkpoints(checkpoints_, 1, 2);
  EXPECT_THAT(names(), ElementsAre("latest", "step-10", "step-2", "step-9"));
}

TEST_F(TrainingCheckpointTest, IsNotFoundWhereNoneWasWritten) {
  std::vector<std::string> skipped;
  EXPECT_FALSE(read_newest_checkpoint(checkpoints_, skipped));
  EXPECT_FALSE(read_newest_checkpoint(scratch_ / "nowhere", skipped));
}

TEST_F(TrainingCheckpointTest, IsNotAPlainModel) {
  io::write_checkpoint(checkpoints_ / "step-1", model_);
  EXPECT_EQ(io::refusal((checkpoints_ / "step-1/manifest.json").string(),
                        [&] { read_training_checkpoint(checkpoints_ / "step-1"); }),
            "\"training\" is missing: this is a model, not a checkpoint of its training");
}

}  // namespace
}  // namespace lathe::train
