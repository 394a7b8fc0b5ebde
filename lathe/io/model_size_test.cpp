#include "lathe/io/model_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/io/weight_directory.h"

namespace lathe::io {
namespace {

using testing::ElementsAre;
using testing::Key;

TEST(ModelSize, CountsWhatIsNeededToRunACheckpoint) {
  const ScratchDirectory scratch;
  Model model = load_model(write_tiny_bert(scratch, "m"));
  model.masters["classifier.weight"] = model.state.at("classifier.weight");
  write_checkpoint(scratch / "c", model);
  scratch.write("c/metrics.jsonl", "many lines");
  ASSERT_TRUE(std::filesystem::exists(scratch / "c/masters.safetensors"));

  const ModelSize size = model_size(scratch / "c");
  EXPECT_THAT(size.files, ElementsAre(Key("config.json"), Key("graph.txt"), Key("manifest.json"),
                                      Key("model.safetensors"), Key("vocab.txt")));
  std::uintmax_t expected = 0;
  for (const auto& [name, bytes] : size.files)
    expected += std::filesystem::file_size(scratch / ("c/" + name));
  EXPECT_EQ(size.bytes(), static_cast<std::int64_t>(expected));
}

TEST(ModelSize, CountsTheShardsOfAHuggingFaceDirectory) {
  const ScratchDirectory scratch;
  const std::string directory = write_tiny_bert(scratch, "m");
  EXPECT_THAT(model_size(directory).files,
              ElementsAre(Key("config.json"), Key("model.safetensors"), Key("vocab.txt")));
  write_weights(directory, tiny_weights(), 3000);
  EXPECT_THAT(model_size(directory).files,
              ElementsAre(Key("config.json"), Key("model-00001-of-00002.safetensors"),
                          Key("model-00002-of-00002.safetensors"),
                          Key("model.safetensors.index.json"), Key("vocab.txt")));
  std::filesystem::remove(scratch / "m/model-00002-of-00002.safetensors");
  EXPECT_THAT(refusal(directory, [&] { model_size(directory); }),
              testing::HasSubstr("model-00002-of-00002.safetensors"));
}

TEST(ModelSize, KnowsACheckpointBeforeItIsWritten) {
  const ScratchDirectory scratch;
  Model model = load_model(write_tiny_bert(scratch, "m"));
  const ModelSize before = checkpoint_size(model);
  write_checkpoint(scratch / "c", model);
  EXPECT_EQ(before.files, model_size(scratch / "c").files);
  model.masters["classifier.weight"] = model.state.at("classifier.weight");
  EXPECT_EQ(checkpoint_size(model).files, before.files);  // masters are not needed to run
}

}  // namespace
}  // namespace lathe::io
