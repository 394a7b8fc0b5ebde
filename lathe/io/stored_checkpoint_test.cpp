// Checkpoints in every storage: the same model comes back, and what was altered is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "lathe/core/graph_text.h"
#include "lathe/io/model.h"
#include "lathe/io/model_size.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/io/weight_directory.h"

namespace lathe::io {
namespace {

// mlp:64,48,10 whose first weight is masked by one place in five.
Model masked_model() {
  Model model = load_model("mlp:64,48,10");
  model.tokenizer = tiny_tokenizer();
  Graph& graph = model.graph;
  const NodeId linear = graph.nodes_of("linear").front();
  const Value weight = graph.input(linear, 1);
  const std::string name = graph.name(weight.node);
  const NodeId mask = graph.insert_before(linear, {.name = name + ".mask",
                                                   .op = "state",
                                                   .inputs = {},
                                                   .attributes = {{"role", std::string("mask")}},
                                                   .types = {graph.type(weight)}});
  const NodeId product = graph.insert_before(
      linear, {.name = name + "/masked", .op = "mul", .inputs = {weight, {mask, 0}}});
  graph.set_input(linear, 1, {product, 0});
  Tensor ones(DType::F32, graph.type(weight).dims({}));
  const std::span<float> values = model.state.at(name).mutable_data<float>();
  std::mt19937 random(1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ones.mutable_data<float>()[i] = random() % 5 == 0 ? 1 : 0;
    values[i] *= ones.data<float>()[i];
    if (values[i] == 0) values[i] = 0;  // not -0
  }
  model.state[name + ".mask"] = ones;
  return model;
}

class EveryStorage : public testing::TestWithParam<Storage> {
 protected:
  std::string write(const Model& model) const {
    write_checkpoint(scratch_ / "c", model, GetParam());
    return (scratch_ / "c").string();
  }
  ScratchDirectory scratch_;
};

TEST_P(EveryStorage, GivesTheSameModelBack) {
  const Model model = masked_model();
  const Model loaded = load_model(write(model));
  EXPECT_EQ(print(loaded.graph), print(model.graph));
  ASSERT_EQ(loaded.state.size(), model.state.size());
  for (const auto& [name, tensor] : model.state)
    EXPECT_TRUE(identical(loaded.state.at(name), tensor)) << name;
  EXPECT_EQ(data::load_tokenizer(scratch_ / "c")->tokens(), tiny_vocabulary());
}

TEST_P(EveryStorage, IsASafetensorsFile) {
  const std::string directory = write(masked_model());
  const SafetensorsFile file = SafetensorsFile::open(directory + "/model.safetensors");
  EXPECT_TRUE(file.has("layers.0.weight"));
  EXPECT_EQ(file.metadata().contains(kFormsKey), GetParam() != Storage::Plain);
}

TEST_P(EveryStorage, IsExportedAsPlainFloats) {
  const Model loaded = load_model(write(masked_model()));
  write_huggingface(scratch_ / "hf", loaded);
  const SafetensorsFile file = SafetensorsFile::open(scratch_ / "hf/model.safetensors");
  EXPECT_FALSE(file.metadata().contains(kFormsKey));
  EXPECT_TRUE(identical(file.tensor("layers.0.weight"), loaded.state.at("layers.0.weight")));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "hf/vocab.txt"));
}

std::string storage_name(const testing::TestParamInfo<Storage>& one) {
  return std::string(name(one.param));
}
INSTANTIATE_TEST_SUITE_P(, EveryStorage,
                         testing::Values(Storage::Plain, Storage::Sparse, Storage::Compact),
                         storage_name);

TEST(StoredCheckpoint, IsSmallerInEachStorage) {
  const Model model = masked_model();
  const std::int64_t plain = checkpoint_size(model, Storage::Plain).bytes();
  const std::int64_t sparse = checkpoint_size(model, Storage::Sparse).bytes();
  const std::int64_t compact = checkpoint_size(model, Storage::Compact).bytes();
  // 48 x 64 ones become bits, four fifths of as many floats go.
  EXPECT_LT(sparse, plain - 48 * 64 * 4 * 17 / 10 + 500);
  EXPECT_LT(compact, sparse - 500);
}

TEST(StoredCheckpoint, HasSmallTextsCompressedOnlyWhereThatHelps) {
  const ScratchDirectory scratch;
  write_checkpoint(scratch / "c", masked_model(), Storage::Compact);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : model_size(scratch / "c").files) names.push_back(name);
  EXPECT_THAT(names,
              testing::ElementsAre("config.json", "graph.txt.zst", "manifest.json",
                                   "model.safetensors", "tokenizer_config.json", "vocab.txt"));
}

TEST(StoredCheckpoint, RefusesAGraphThatItDidNotWrite) {
  const ScratchDirectory scratch;
  write_checkpoint(scratch / "c", masked_model(), Storage::Compact);
  scratch.write("c/graph.txt", "lathe-ir 2\n");
  const std::string directory = (scratch / "c").string();
  EXPECT_EQ(refusal(directory, [&] { load_model(directory); }),
            "graph.txt: is not listed in the manifest");
}

TEST(StoredCheckpoint, GivesAMaskAcrossShards) {
  const ScratchDirectory scratch;
  const Model model = masked_model();
  const StoredWeights stored = store_weights(
      model.state, {{"layers.0.weight", {.mask = "layers.0.weight.mask"}}}, Storage::Sparse);
  write_weights(scratch.path(), stored, 1000);
  const State read = read_weights(scratch.path());
  for (const auto& [name, tensor] : model.state)
    EXPECT_TRUE(identical(read.at(name), tensor)) << name;
  EXPECT_GT(weight_files(scratch.path()).size(), 2u);
}

// Every byte of a file may be wrong; reading it ends with tensors or with one line.
TEST(StoredCheckpoint, EveryAlteredFileIsReadOrRefused) {
  const ScratchDirectory scratch;
  write_checkpoint(scratch / "c", masked_model(), Storage::Compact);
  const std::string content = scratch.read("c/model.safetensors");
  const std::size_t header = content.find("}}") + 100;
  std::filesystem::create_directory(scratch / "altered");
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string altered = content;
    // Half of the changes in the header, whose digits mean the most.
    char& letter = altered[8 + random() % (random() % 2 == 0 ? header : altered.size() - 8)];
    letter = letter >= '0' && letter <= '9' ? static_cast<char>('0' + random() % 10)
                                            : static_cast<char>(random());
    scratch.write("altered/model.safetensors", altered);
    const std::string result =
        refusal((scratch / "altered").string(), [&] { read_weights(scratch / "altered"); });
    EXPECT_EQ(result.find('\n'), std::string::npos) << result;
    if (result != "accepted") ++refused;
  }
  // Accepted are changes of tensors that are stored as they are, which the manifest's hash covers.
  EXPECT_GT(refused, 600);
}

}  // namespace
}  // namespace lathe::io
