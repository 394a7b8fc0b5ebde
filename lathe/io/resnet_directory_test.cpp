#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/model.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/io/weight_directory.h"
#include "lathe/io/write_elsewhere.h"

// A family whose tensors have two sets of names.
namespace lathe::io {
namespace {

using testing::IsEmpty;

Model small_resnet() {
  return load_model("resnet18", {.num_labels = 3,
                                 .config = {{"embedding_size", std::int64_t{4}},
                                            {"hidden_sizes", std::vector<std::int64_t>{4, 8}},
                                            {"depths", std::vector<std::int64_t>{1, 2}},
                                            {"image_size", std::vector<std::int64_t>{16, 24}}}});
}

void expect_same(const Model& read, const Model& model) {
  EXPECT_THAT(read.fresh, IsEmpty());
  EXPECT_THAT(read.left_out, IsEmpty());
  EXPECT_EQ(read.config, model.config);
  ASSERT_EQ(read.state.size(), model.state.size());
  for (const auto& [name, tensor] : model.state)
    EXPECT_TRUE(identical(read.state.at(name), tensor)) << name;
}

TEST(ResNetDirectory, IsReadAsHuggingFaceNamesIt) {
  const ScratchDirectory scratch;
  Model model = small_resnet();
  write_huggingface(scratch / "m", model);
  State files = read_weights(scratch / "m");
  EXPECT_TRUE(files.contains("resnet.encoder.stages.1.layers.0.shortcut.convolution.weight"));
  files["resnet.embedder.embedder.normalization.num_batches_tracked"] = Tensor(DType::I64, {});
  write_safetensors(scratch / "m/model.safetensors", files);
  model.config = load_model((scratch / "m").string()).config;
  expect_same(load_model((scratch / "m").string()), model);
}

TEST(ResNetDirectory, IsReadAndWrittenAsTorchvisionNamesIt) {
  const ScratchDirectory scratch;
  Model model = small_resnet();
  write_elsewhere(scratch / "m", model, "torchvision");
  const State files = read_weights(scratch / "m");
  EXPECT_EQ(files.size(), model.state.size());
  for (const char* name : {"conv1.weight", "bn1.running_var", "layer2.1.conv2.weight",
                           "layer2.0.downsample.1.running_mean", "fc.weight"})
    EXPECT_TRUE(files.contains(name)) << name;
  model.config = load_model((scratch / "m").string()).config;
  expect_same(load_model((scratch / "m").string()), model);
}

TEST(ResNetDirectory, IsNotWrittenWithNamesThatAFamilyDoesNotHave) {
  const ScratchDirectory scratch;
  EXPECT_EQ(
      refusal("", [&] { write_elsewhere(scratch / "m", load_model("mlp:2,2"), "torchvision"); }),
      "torchvision does not name the tensors of mlp models");
}

}  // namespace
}  // namespace lathe::io
