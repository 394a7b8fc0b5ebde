#include "lathe/compress/lora_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/lora.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/json_reader.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::compress {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const std::string kQuery = "bert.encoder.layer.0.attention.self.query";
const std::string kStored = "base_model.model." + kQuery;

class LoraAdapter : public testing::Test {
 protected:
  io::Model load() const { return io::load_model(directory_, {.task = "classify"}); }
  // Writes an adapter on queries and values, of rank 2, with a classifier.
  io::Model save() const {
    io::Model model = load();
    insert_lora(model.graph, model.state, {.rank = 2, .alpha = 4, .targets = {"query|value"}}, 3);
    for (float& value : model.state.at(lora_b_name(kQuery)).mutable_data<float>()) value = 0.5f;
    model.state["classifier.bias"] = Tensor::from<float>({2}, {3, 4});
    save_adapter(scratch_ / "adapter", model, {"classifier.weight", "classifier.bias"}, "base");
    return model;
  }
  std::string refusal(const std::string& file) const {
    io::Model model = load();
    const std::string message = io::refusal((scratch_ / ("adapter/" + file)).string(),
                                            [&] { load_adapter(scratch_ / "adapter", model); });
    EXPECT_EQ(print(model.graph), print(load().graph));
    return message;
  }
  // Loads the adapter with one key of its configuration changed.
  std::string refusal_with(const char* key, const json& value) const {
    json config = parse_json(scratch_.read("adapter/adapter_config.json"));
    config[key] = value;
    scratch_.write("adapter/adapter_config.json", config.dump());
    return refusal("adapter_config.json");
  }
  // Loads it with other tensors.
  template <typename Change>
  std::string refusal_after(Change change) const {
    State tensors;
    {
      const auto file = io::SafetensorsFile::open(scratch_ / "adapter/adapter_model.safetensors");
      for (const io::TensorInfo& info : file.tensors()) tensors[info.name] = file.tensor(info.name);
      change(tensors);
      io::write_safetensors(scratch_ / "adapter/adapter_model.safetensors", tensors);
    }
    return refusal("adapter_model.safetensors");
  }

  io::ScratchDirectory scratch_;
  std::string directory_ = io::write_tiny_bert(scratch_, "m");
};

TEST_F(LoraAdapter, HasTheNamesAndShapesOfPeft) {
  save();
  const auto file = io::SafetensorsFile::open(scratch_ / "adapter/adapter_model.safetensors");
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const io::TensorInfo& info : file.tensors()) shapes[info.name] = info.dims;
  const std::string self = "base_model.model.bert.encoder.layer.0.attention.self.";
  EXPECT_EQ(shapes, (std::map<std::string, std::vector<std::int64_t>>{
                        {self + "query.lora_A.weight", {2, 8}},
                        {self + "query.lora_B.weight", {8, 2}},
                        {self + "value.lora_A.weight", {2, 8}},
                        {self + "value.lora_B.weight", {8, 2}},
                        {"base_model.model.classifier.weight", {2, 8}},
                        {"base_model.model.classifier.bias", {2}}}));
  EXPECT_EQ(parse_json(scratch_.read("adapter/adapter_config.json")), parse_json(R"({
    "peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": "base",
    "r": 2, "lora_alpha": 4, "lora_dropout": 0.0, "target_modules": ["query", "value"],
    "modules_to_save": ["classifier"], "bias": "none", "fan_in_fan_out": false,
    "inference_mode": true, "init_lora_weights": true, "use_rslora": false, "use_dora": false})"));
}

TEST_F(LoraAdapter, NamesItsTargetsByTheShortestEndingsOfTheirOwn) {
  io::Model model = load();
  insert_lora(model.graph, model.state, {}, 3);
  save_adapter(scratch_ / "adapter", model, {}, "base");
  const json config = parse_json(scratch_.read("adapter/adapter_config.json"));
  EXPECT_EQ(config["target_modules"],
            json({"intermediate.dense", "key", "output.dense", "query", "value"}));
  EXPECT_TRUE(config["modules_to_save"].is_null());
}

TEST_F(LoraAdapter, ComesBackAsItWas) {
  const io::Model saved = save();
  io::Model model = load();
  load_adapter(scratch_ / "adapter", model);
  EXPECT_EQ(print(model.graph), print(saved.graph));
  ASSERT_EQ(model.state.size(), saved.state.size());
  for (const auto& [name, tensor] : saved.state)
    EXPECT_TRUE(identical(model.state.at(name), tensor)) << name;
}

TEST_F(LoraAdapter, RefusesOtherKindsOfAdapter) {
  save();
  EXPECT_EQ(refusal_with("use_dora", true), "use_dora is true: expected false");
  EXPECT_EQ(refusal_with("bias", "all"), "bias is \"all\": expected \"none\"");
  EXPECT_EQ(refusal_with("peft_type", "IA3"), "peft_type is \"IA3\": expected \"LORA\"");
}

TEST_F(LoraAdapter, RefusesSettingsThatMakeNoSense) {
  save();
  EXPECT_EQ(refusal_with("lora_alpha", "much"), "lora_alpha is \"much\": expected a number");
  EXPECT_EQ(refusal_with("r", 0.5), "r is 0.5: expected a whole number from 1 to 65536");
}

TEST_F(LoraAdapter, NamesTheTensorThatIsMissing) {
  save();
  EXPECT_EQ(refusal_after([](State& tensors) { tensors.erase(kStored + ".lora_B.weight"); }),
            "tensor \"" + kStored + ".lora_B.weight\" is missing: expected f32[8,2]");
}

TEST_F(LoraAdapter, NamesTheTensorOfAnotherShape) {
  save();
  EXPECT_EQ(refusal_after([](State& tensors) {
              tensors[kStored + ".lora_A.weight"] = Tensor(DType::F32, {3, 8});
            }),
            "tensor \"" + kStored + ".lora_A.weight\" has shape [3,8]: expected [2,8]");
}

TEST_F(LoraAdapter, NamesTheTensorThatTheModelHasNoPlaceFor) {
  save();
  const auto add = [&](const char* name) {
    return refusal_after([&](State& tensors) { tensors[name] = Tensor(DType::F32, {2, 8}); });
  };
  EXPECT_EQ(add("base_model.model.quiry.lora_A.weight"),
            "tensor \"base_model.model.quiry.lora_A.weight\": the model has no linear \"quiry\"");
  save();
  EXPECT_EQ(
      add("base_model.model.score.weight"),
      "tensor \"base_model.model.score.weight\": the model has no parameter \"score.weight\"");
  save();
  EXPECT_EQ(add("stray"),
            "tensor \"stray\": expected a name that starts with \"base_model.model.\"");
}

TEST_F(LoraAdapter, NeedsPathsToSave) {
  EXPECT_EQ(io::refusal("", [&] { save_adapter(scratch_ / "adapter", load(), {}, "base"); }),
            "the model has no LoRA paths to save");
}

}  // namespace
}  // namespace lathe::compress
