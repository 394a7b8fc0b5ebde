#include "lathe/io/weight_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/safetensors.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/io/testing/torch_file.h"

namespace lathe::io {
namespace {

using Names = std::vector<std::string>;

Tensor tensor(float first, float second) {
  return Tensor::from<float>({2}, {first, second});
}

void expect_same(const State& a, const State& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_TRUE(identical(value, b.find(name)->second)) << name;
  }
}

std::string read(const ScratchDirectory& scratch) {
  return refusal(scratch.path().string(), [&] { read_weights(scratch.path()); });
}

const State kWeights{{"a", tensor(1, 2)}, {"b", tensor(3, 4)}, {"c", tensor(5, 6)}};

TEST(WeightDirectory, HoldsOneFileWhenTheWeightsFit) {
  const ScratchDirectory scratch;
  write_weights(scratch.path(), kWeights, 24);
  EXPECT_EQ(scratch.names(), Names{"model.safetensors"});
  EXPECT_EQ(SafetensorsFile::open(scratch / "model.safetensors").metadata(),
            (Metadata{{"format", "pt"}}));
  expect_same(read_weights(scratch.path()), kWeights);
}

TEST(WeightDirectory, HoldsShardsAndTheirIndexOtherwise) {
  const ScratchDirectory scratch;
  write_weights(scratch.path(), kWeights, 16);
  EXPECT_EQ(scratch.names(),
            (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                   "model.safetensors.index.json"}));
  EXPECT_EQ(scratch.read("model.safetensors.index.json"), R"({
  "metadata": {
    "total_size": 24
  },
  "weight_map": {
    "a": "model-00001-of-00002.safetensors",
    "b": "model-00001-of-00002.safetensors",
    "c": "model-00002-of-00002.safetensors"
  }
}
)");
  expect_same(read_weights(scratch.path()), kWeights);
}

TEST(WeightDirectory, GivesATensorBeyondTheLimitAShardOfItsOwn) {
  const ScratchDirectory scratch;
  write_weights(scratch.path(), kWeights, 1);
  EXPECT_EQ(scratch.names().size(), 4u);
  expect_same(read_weights(scratch.path()), kWeights);
}

TEST(WeightDirectory, ForgetsTheFilesOfAnEarlierWrite) {
  const ScratchDirectory scratch;
  scratch.write("model-notes.safetensors", "somebody else's");
  write_weights(scratch.path(), kWeights, 8);
  const State fewer{{"a", tensor(7, 8)}, {"b", tensor(9, 10)}};
  write_weights(scratch.path(), fewer, 8);
  EXPECT_EQ(scratch.names(),
            (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                   "model-notes.safetensors", "model.safetensors.index.json"}));
  expect_same(read_weights(scratch.path()), fewer);
  write_weights(scratch.path(), kWeights);
  EXPECT_EQ(scratch.names(), (Names{"model-notes.safetensors", "model.safetensors"}));
  expect_same(read_weights(scratch.path()), kWeights);
  write_weights(scratch.path(), fewer, 8);
  EXPECT_EQ(scratch.names().size(), 4u);
  expect_same(read_weights(scratch.path()), fewer);
}

TEST(WeightDirectory, CanBeRewrittenWithTensorsThatViewIt) {
  const ScratchDirectory scratch;
  write_weights(scratch.path(), kWeights, 8);
  write_weights(scratch.path(), read_weights(scratch.path()), 16);
  expect_same(read_weights(scratch.path()), kWeights);
}

TEST(WeightDirectory, SaysWhatItLookedFor) {
  const ScratchDirectory scratch;
  EXPECT_EQ(read(scratch),
            "has no weights, looked for model.safetensors, pytorch_model.bin and their indexes");
  EXPECT_EQ(refusal(scratch.path().string(), [&] { read_weights(scratch / "none"); }),
            "none: no such directory");
}

TEST(WeightDirectory, ReadsWeightsOfTorch) {
  const torch_file::TorchTensor tensor{.storage_size = 2, .dims = {2}, .strides = {1}};
  const auto file = [&](const std::string& name) {
    return torch_file::archive(
        {{"m/data.pkl", torch_file::pickled_weights({{name, torch_file::pickled_tensor(tensor)}})},
         {"m/data/0", torch_file::bytes_of(std::vector<float>{1, 2})}});
  };
  const Tensor expected = Tensor::from<float>({2}, {1, 2});
  const ScratchDirectory single, sharded;
  single.write("pytorch_model.bin", file("w"));
  expect_same(read_weights(single.path()), State{{"w", expected}});
  EXPECT_THAT(weight_files(single.path()), testing::ElementsAre("pytorch_model.bin"));
  sharded.write("a.bin", file("v"));
  sharded.write("b.bin", file("w"));
  sharded.write("pytorch_model.bin.index.json", R"({"weight_map":{"v":"a.bin","w":"b.bin"}})");
  expect_same(read_weights(sharded.path()), State{{"v", expected}, {"w", expected}});
}

// Directories with shards s1 (tensor a), s2 (tensor b) and s3 (tensors a and b), a link that leads
// out to a valid file, and one index each.
TEST(WeightDirectory, ChecksTheIndexAgainstTheShards) {
  struct Case {
    std::string_view index, message;
  };
  const Case cases[] = {
      {R"({"weight_map":{"a":"s1","b":"s2"}})", "accepted"},
      {R"({"weight_map":{"a":"s3","b":"s3"}})", "accepted"},
      {R"([])",
       "model.safetensors.index.json: has no \"weight_map\", expected an object of tensor names "
       "and "
       "their files"},
      {R"({"weight_map":[]})",
       "model.safetensors.index.json: weight_map: is array, expected an object"},
      {R"({"weight_map":{}})",
       "model.safetensors.index.json: weight_map: is empty, expected at least one tensor"},
      {R"({"weight_map":{"a":1}})",
       "model.safetensors.index.json: weight_map: \"a\" is number, expected a file name"},
      {R"({"weight_map":{"a":"s1","a":"s3"}})",
       "model.safetensors.index.json:1:27: duplicate key \"a\""},
      {R"({"weight_map":{"a":"s1","b":"s9"}})",
       "model.safetensors.index.json: DIR/s9: cannot open: no such file or directory"},
      {R"({"weight_map":{"a":"s1","b":"s2","c":"s2"}})",
       "s2: has no tensor \"c\", which model.safetensors.index.json puts there"},
      {R"({"weight_map":{"a":"s3"}})",
       "s3: tensor \"b\" is not in the weight_map of model.safetensors.index.json"},
      {R"({"weight_map":{"a":"s1","b":"s3"}})",
       "s3: tensor \"a\" is in this file, but model.safetensors.index.json puts it in \"s1\""},
      {R"({"weight_map":{"a":"../outside"}})",
       "model.safetensors.index.json: DIR: file name \"../outside\" contains \"..\""},
      {R"({"weight_map":{"a":"/etc/passwd"}})",
       "model.safetensors.index.json: DIR: file name \"/etc/passwd\" is absolute, expected one "
       "inside the directory"},
      {R"({"weight_map":{"a":"link"}})",
       "model.safetensors.index.json: DIR: file name \"link\" leads outside the directory"},
      {R"({"weight_map":{"a":"model.safetensors.index.json"}})",
       "model.safetensors.index.json: DIR/model.safetensors.index.json: header length "
       "8388068008349082235 exceeds the limit of 100000000 bytes"},
  };
  const ScratchDirectory scratch;
  const auto model = scratch / "model";
  std::filesystem::create_directory(model);
  write_safetensors(scratch / "outside", State{{"a", tensor(1, 2)}});
  write_safetensors(model / "s1", State{{"a", tensor(1, 2)}});
  write_safetensors(model / "s2", State{{"b", tensor(3, 4)}});
  write_safetensors(model / "s3", State{{"a", tensor(1, 2)}, {"b", tensor(3, 4)}});
  std::filesystem::create_symlink("../outside", model / "link");
  for (const auto& [index, message] : cases) {
    scratch.write("model/model.safetensors.index.json", index);
    std::string found = refusal(model.string(), [&] { read_weights(model); });
    if (const std::size_t at = found.find(model.string()); at != found.npos)
      found.replace(at, model.string().size(), "DIR");
    EXPECT_EQ(found, message);
  }
}

}  // namespace
}  // namespace lathe::io
