#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/io/json_file.h"
#include "lathe/io/model.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::io {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

void expect_same_state(const State& got, const State& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(identical(got.at(name), tensor)) << name;
}

TEST(WriteHuggingface, GivesTheSameModelBack) {
  const ScratchDirectory scratch;
  const Model model = load_model(write_tiny_bert(scratch, "m"));
  write_huggingface(scratch / "copy", model);

  const Model copy = load_model((scratch / "copy").string());
  expect_same_state(copy.state, model.state);
  EXPECT_EQ(print(copy.graph), print(model.graph));
  EXPECT_EQ(copy.label_names, model.label_names);
  EXPECT_EQ(copy.task, "classify");
}

TEST(WriteHuggingface, KeepsUnknownKeysAndTheTokenizer) {
  const ScratchDirectory scratch;
  write_huggingface(scratch / "copy", load_model(write_tiny_bert(scratch, "m")));
  const nlohmann::json config = read_json(scratch / "copy/config.json");
  EXPECT_EQ(config["transformers_version"], "4.0.0");
  EXPECT_EQ(config["use_cache"], true);
  EXPECT_EQ(scratch.read("copy/vocab.txt"), scratch.read("m/vocab.txt"));
}

TEST(WriteHuggingface, WritesShardsThatLoadAsOne) {
  const ScratchDirectory scratch;
  const Model model = load_model(write_tiny_bert(scratch, "m"));
  write_huggingface(scratch / "copy", model, 1000);
  EXPECT_FALSE(std::filesystem::exists(scratch / "copy/model.safetensors"));
  expect_same_state(load_model((scratch / "copy").string()).state, model.state);
}

TEST(WriteHuggingface, WritesTheTokenizerOfAModelThatNoDirectoryHolds) {
  const ScratchDirectory scratch;
  Model model = load_model("mlp:4,8");
  model.tokenizer = tiny_tokenizer();
  write_huggingface(scratch / "m", model);
  const auto written = data::load_tokenizer(scratch / "m");
  EXPECT_EQ(written->tokens(), tiny_vocabulary());
  EXPECT_EQ(written->files(), model.tokenizer->files());
  expect_same_state(load_model((scratch / "m").string()).state, model.state);
}

TEST(WriteHuggingface, LeavesNothingBehindWhenItFails) {
  const ScratchDirectory scratch;
  const Model model = load_model(write_tiny_bert(scratch, "m"));
  EXPECT_EQ(refusal("", [&] { write_huggingface(scratch / "copy", model, 0); }),
            "shard size 0: expected at least 1 byte");
  EXPECT_THAT(scratch.names(), ElementsAre("m"));
}

TEST(WriteHuggingface, RefusesATargetThatExists) {
  const ScratchDirectory scratch;
  const Model model = load_model("mlp:4,8");
  std::filesystem::create_directory(scratch / "there");
  const std::string target = (scratch / "there").string();
  EXPECT_EQ(refusal(target, [&] { write_huggingface(target, model); }), "exists already");
  EXPECT_EQ(refusal(target, [&] { write_checkpoint(target, model); }), "exists already");
  EXPECT_TRUE(std::filesystem::is_empty(target));
  EXPECT_THAT(scratch.names(), ElementsAre("there"));
}

TEST(WriteHuggingface, TakesATargetThatEndsInASlash) {
  const ScratchDirectory scratch;
  const Model model = load_model("mlp:4,8");
  write_huggingface(scratch / "new/", model);
  EXPECT_THAT(scratch.names(), ElementsAre("new"));
  expect_same_state(load_model((scratch / "new").string()).state, model.state);
}

TEST(WriteHuggingface, RefusesAnUnwritableParent) {
  const ScratchDirectory scratch;
  scratch.write("file", "");
  EXPECT_THAT(refusal("", [&] { write_huggingface(scratch / "file/m", load_model("mlp:4,8")); }),
              EndsWith("/file: cannot be created: Not a directory"));
  EXPECT_THAT(scratch.names(), ElementsAre("file"));
}

TEST(WriteCheckpoint, GivesTheSameGraphAndStatesBack) {
  const ScratchDirectory scratch;
  Model model = load_model(write_tiny_bert(scratch, "m"));
  ASSERT_GT(run_pass("remove-dropout", model.graph), 0);
  write_checkpoint(scratch / "checkpoint", model);

  ASSERT_TRUE(is_checkpoint(scratch / "checkpoint"));
  const Model copy = load_model((scratch / "checkpoint").string());
  EXPECT_EQ(print(copy.graph), print(model.graph));
  EXPECT_THAT(print(copy.graph), testing::Not(testing::HasSubstr("= dropout(")));
  expect_same_state(copy.state, model.state);
  EXPECT_EQ(copy.label_names, model.label_names);
  EXPECT_TRUE(copy.fresh.empty());
}

TEST(WriteCheckpoint, RemembersWhatWasNeverTrained) {
  const ScratchDirectory scratch;
  State encoder = tiny_weights();
  encoder.erase("classifier.weight");
  write_checkpoint(scratch / "c", load_model(write_tiny_bert(scratch, "m", encoder)));
  EXPECT_THAT(load_model((scratch / "c").string()).fresh, ElementsAre("classifier.weight"));
}

TEST(WriteCheckpoint, MayLoseItsMastersButNotHaveOthers) {
  const ScratchDirectory scratch;
  Model model = load_model("mlp:4,8");
  model.masters["layers.0.weight"] = Tensor::from<float>({1}, {1});
  write_checkpoint(scratch / "c", model);
  const std::string directory = (scratch / "c").string();
  EXPECT_EQ(load_model(directory, {.with_masters = true}).masters.size(), 1u);

  write_safetensors(scratch / "c/masters.safetensors",
                    State{{"layers.0.weight", Tensor::from<float>({1}, {2})}});
  EXPECT_EQ(refusal(directory, [&] { load_model(directory, {.with_masters = true}); }),
            "masters.safetensors: its SHA-256 differs from the manifest's: the file was altered");
  std::filesystem::remove(scratch / "c/masters.safetensors");
  EXPECT_TRUE(load_model(directory, {.with_masters = true}).masters.empty());
}

TEST(WriteCheckpoint, RefusesMastersThatItDidNotWrite) {
  const ScratchDirectory scratch;
  write_checkpoint(scratch / "c", load_model("mlp:4,8"));
  write_safetensors(scratch / "c/masters.safetensors", State{{"x", Tensor(DType::F32, {1})}});
  const std::string directory = (scratch / "c").string();
  EXPECT_EQ(refusal(directory, [&] { load_model(directory); }),
            "masters.safetensors: is not listed in the manifest");
}

TEST(WriteCheckpoint, LoadsForAnotherTaskWithAFreshHead) {
  const ScratchDirectory scratch;
  write_checkpoint(scratch / "c", load_model(write_tiny_bert(scratch, "m")));
  const Model model = load_model((scratch / "c").string(), {.task = "mlm"});
  EXPECT_EQ(model.task, "mlm");
  EXPECT_THAT(model.fresh, testing::Contains("cls.predictions.bias"));
  EXPECT_THAT(model.left_out, testing::Contains("classifier.weight"));
}

TEST(WriteCheckpoint, LoadsForAnotherTaskOnlyWhatTheFamilyBuilds) {
  const ScratchDirectory scratch;
  Model model = load_model(write_tiny_bert(scratch, "m"));
  run_pass("remove-dropout", model.graph);
  write_checkpoint(scratch / "c", model);
  const std::string directory = (scratch / "c").string();
  EXPECT_EQ(refusal(directory, [&] { load_model(directory, {.task = "mlm"}); }),
            "cannot be loaded for mlm: its graph for classify is not the one that bert builds: "
            "node \"bert.embeddings.dropout\" (dropout) was removed");
}

TEST(WriteCheckpoint, LoadsWithAnotherNumberOfLabelsAndAFreshLayerForThem) {
  const ScratchDirectory scratch;
  write_checkpoint(scratch / "c", load_model(write_tiny_bert(scratch, "m")));
  const Model model = load_model((scratch / "c").string(), {.num_labels = 3});
  EXPECT_THAT(model.state.at("classifier.weight").dims(), ElementsAre(3, 8));
  EXPECT_THAT(model.fresh, ElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_EQ(model.label_names.size(), 3u);
}

TEST(WriteCheckpoint, KeepsWhatPassesDidWhenOtherInputsAreAskedFor) {
  const ScratchDirectory scratch;
  Model model = load_model(write_tiny_bert(scratch, "m"));
  ASSERT_GT(run_pass("remove-dropout", model.graph), 0);
  write_checkpoint(scratch / "c", model);
  const Model copy = load_model((scratch / "c").string(), {.inputs = {"input_ids"}});
  EXPECT_EQ(copy.graph.nodes_of("input").size(), 1u);
  EXPECT_TRUE(copy.graph.nodes_of("dropout").empty());
}

TEST(WriteCheckpoint, CanReplaceTheDirectoryItsWeightsAreMappedFrom) {
  const ScratchDirectory scratch;
  const std::string directory = write_tiny_bert(scratch, "m");
  const Model model = load_model(directory);
  write_checkpoint(scratch / "new", model);
  std::filesystem::remove_all(directory);
  std::filesystem::rename(scratch / "new", directory);
  expect_same_state(load_model(directory).state, tiny_weights());
}

}  // namespace
}  // namespace lathe::io
