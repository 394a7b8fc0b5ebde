#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/io/model.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/io/weight_directory.h"

namespace lathe::io {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The message with which the directory is refused, without the directory's own name.
std::string refusal_of(const std::string& directory, const LoadOptions& options = {}) {
  return refusal(directory, [&] { load_model(directory, options); });
}

std::string config_with(std::string_view from, std::string_view to) {
  std::string config(kTinyConfig);
  const std::size_t at = config.find(from);
  check(at != config.npos, "the text to replace is in the configuration");
  return config.replace(at, from.size(), to);
}

TEST(LoadModel, TakesEveryTensorOfAHuggingFaceDirectory) {
  const ScratchDirectory scratch;
  const Model model = load_model(write_tiny_bert(scratch, "m"));

  EXPECT_EQ(model.family->name, "bert");
  EXPECT_EQ(model.task, "classify");
  EXPECT_THAT(model.label_names, ElementsAre("bad", "good"));
  EXPECT_THAT(model.fresh, IsEmpty());
  EXPECT_THAT(model.left_out, IsEmpty());
  const State weights = tiny_weights();
  ASSERT_EQ(model.state.size(), weights.size());
  for (const auto& [name, tensor] : weights)
    EXPECT_TRUE(identical(model.state.at(name), tensor)) << name;
}

TEST(LoadModel, FindsTheEncoderWithoutItsPrefix) {
  const ScratchDirectory scratch;
  State bare;
  for (const auto& [name, tensor] : tiny_weights())
    if (name.starts_with("bert.")) bare[name.substr(5)] = tensor;
  const Model model = load_model(write_tiny_bert(scratch, "m", bare));

  EXPECT_THAT(model.fresh, ElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_THAT(model.left_out, IsEmpty());
  EXPECT_TRUE(identical(model.state.at("bert.embeddings.word_embeddings.weight"),
                        bare.at("embeddings.word_embeddings.weight")));
}

TEST(LoadModel, ListsWhatTheGraphHasNoUseFor) {
  const ScratchDirectory scratch;
  State weights = tiny_weights();
  weights["cls.predictions.bias"] = Tensor(DType::F32, {20});
  const Model model = load_model(write_tiny_bert(scratch, "m", weights));
  EXPECT_THAT(model.left_out, ElementsAre("cls.predictions.bias"));
}

TEST(LoadModel, RefusesPartsOfTheEncoderThatTheConfigurationDoesNotHave) {
  const ScratchDirectory scratch;
  for (const char* const name :
       {"bert.encoder.layer.7.output.dense.bias",
        "bert.encoder.layer.0.attention.self.q_norm.weight", "embeddings.word_embeddings.weight"}) {
    SCOPED_TRACE(name);
    State weights = tiny_weights();
    weights[name] = Tensor(DType::F32, {8});
    EXPECT_EQ(refusal_of(write_tiny_bert(scratch, name, weights)),
              fmt::format("tensor \"{}\" has no place in the bert model that config.json describes",
                          name));
  }
  State bare;
  for (const auto& [name, tensor] : tiny_weights())
    if (name.starts_with("bert.")) bare[name.substr(5)] = tensor;
  bare["encoder.norm.weight"] = bare["encoder.norm.bias"] = Tensor(DType::F32, {8});
  EXPECT_EQ(refusal_of(write_tiny_bert(scratch, "bare", bare)),
            "tensor \"encoder.norm.bias\" (and 1 more) has no place in the bert model that "
            "config.json describes");
}

TEST(LoadModel, StartsAMissingHeadFreshFromTheSeed) {
  const ScratchDirectory scratch;
  State weights = tiny_weights();
  weights.erase("classifier.weight");
  const std::string directory = write_tiny_bert(scratch, "m", weights);
  const Model one = load_model(directory, {.seed = 1});
  const Model same = load_model(directory, {.seed = 1});
  const Model other = load_model(directory, {.seed = 2});

  EXPECT_THAT(one.fresh, ElementsAre("classifier.weight"));
  EXPECT_TRUE(identical(one.state.at("classifier.weight"), same.state.at("classifier.weight")));
  EXPECT_FALSE(identical(one.state.at("classifier.weight"), other.state.at("classifier.weight")));
}

TEST(LoadModel, NamesAMissingEncoderTensor) {
  const ScratchDirectory scratch;
  State weights = tiny_weights();
  weights.erase("bert.encoder.layer.0.output.dense.weight");
  EXPECT_EQ(refusal_of(write_tiny_bert(scratch, "m", weights)),
            "tensor \"bert.encoder.layer.0.output.dense.weight\" is missing: expected f32[8,16]");
}

TEST(LoadModel, NamesATensorOfTheWrongShape) {
  const ScratchDirectory scratch;
  State weights = tiny_weights();
  weights["bert.encoder.layer.0.intermediate.dense.weight"] = Tensor(DType::F32, {8, 16});
  EXPECT_EQ(refusal_of(write_tiny_bert(scratch, "m", weights)),
            "tensor \"bert.encoder.layer.0.intermediate.dense.weight\" has shape [8,16], but the "
            "configuration expects [16,8]");
}

TEST(LoadModel, NamesATensorOfIntegers) {
  const ScratchDirectory scratch;
  State weights = tiny_weights();
  weights["classifier.bias"] = Tensor(DType::I64, {2});
  EXPECT_EQ(refusal_of(write_tiny_bert(scratch, "m", weights)),
            "tensor \"classifier.bias\" is i64: expected floating-point numbers");
}

TEST(LoadModel, ConvertsNarrowFloatsToFloat32) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F64}) {
    SCOPED_TRACE(name(dtype));
    const ScratchDirectory scratch;
    State weights = tiny_weights();
    for (auto& [name, tensor] : weights) tensor = tensor.converted(dtype);
    const Model model = load_model(write_tiny_bert(scratch, "m", weights));
    for (const auto& [name, tensor] : weights)
      EXPECT_TRUE(identical(model.state.at(name), tensor.converted(DType::F32))) << name;
  }
}

TEST(LoadModel, ReadsTheOldNamesOfLayerNorms) {
  const ScratchDirectory scratch;
  State old;
  for (const auto& [name, tensor] : tiny_weights()) {
    if (name.ends_with("LayerNorm.weight"))
      old[name.substr(0, name.size() - 6) + "gamma"] = tensor;
    else if (name.ends_with("LayerNorm.bias"))
      old[name.substr(0, name.size() - 4) + "beta"] = tensor;
    else
      old[name] = tensor;
  }
  ASSERT_TRUE(old.contains("bert.embeddings.LayerNorm.gamma"));
  const Model model = load_model(write_tiny_bert(scratch, "m", old));
  for (const auto& [name, tensor] : tiny_weights())
    EXPECT_TRUE(identical(model.state.at(name), tensor)) << name;
}

TEST(LoadModel, ReadsShards) {
  const ScratchDirectory scratch;
  const std::string directory = write_tiny_bert(scratch, "m");
  write_weights(directory, tiny_weights(), 1000);
  ASSERT_TRUE(std::filesystem::exists(scratch / "m/model.safetensors.index.json"));
  ASSERT_FALSE(std::filesystem::exists(scratch / "m/model.safetensors"));
  const Model model = load_model(directory);
  EXPECT_THAT(model.fresh, IsEmpty());
  for (const auto& [name, tensor] : tiny_weights())
    EXPECT_TRUE(identical(model.state.at(name), tensor)) << name;
}

TEST(LoadModel, SuggestsTheNearestModelType) {
  const ScratchDirectory scratch;
  const std::string directory =
      write_tiny_bert(scratch, "m", tiny_weights(), config_with("\"bert\"", "\"brt\""));
  try {
    load_model(directory);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(
        error.message(),
        testing::StartsWith(directory + "/config.json: unknown model_type \"brt\"; known: bert, "));
    EXPECT_EQ(error.hint(), "did you mean \"bert\"?");
  }
}

TEST(LoadModel, InfersAMissingModelTypeFromTheTensorsNames) {
  const ScratchDirectory scratch;
  const std::string config = config_with("\"model_type\": \"bert\", ", "");
  EXPECT_EQ(load_model(write_tiny_bert(scratch, "m", tiny_weights(), config)).family->name, "bert");
}

TEST(LoadModel, SaysWhenNothingTellsTheModelType) {
  const ScratchDirectory scratch;
  State weights;
  weights["encoder.weight"] = Tensor(DType::F32, {2});
  EXPECT_THAT(
      refusal_of(write_tiny_bert(scratch, "m", weights, "{}")),
      testing::StartsWith("config.json: model_type is missing and the tensors' names do not "
                          "tell it; known: bert, "));
}

TEST(LoadModel, RefusesAModelTypeThatIsNoText) {
  const ScratchDirectory scratch;
  EXPECT_EQ(refusal_of(write_tiny_bert(scratch, "m", tiny_weights(), config_with("\"bert\"", "7"))),
            "config.json: model_type is 7: expected a text");
}

TEST(LoadModel, NamesAConfigurationKeyOfTheWrongKind) {
  const ScratchDirectory scratch;
  EXPECT_EQ(
      refusal_of(write_tiny_bert(scratch, "m", tiny_weights(),
                                 config_with("\"hidden_size\": 8", "\"hidden_size\": \"8\""))),
      "config.json: hidden_size is \"8\": expected an integer");
  EXPECT_EQ(refusal_of(write_tiny_bert(
                scratch, "n", tiny_weights(),
                config_with("\"num_attention_heads\": 2", "\"num_attention_heads\": 3"))),
            "config.json: hidden_size 8 is not a multiple of num_attention_heads 3");
}

TEST(LoadModel, RefusesAConfigurationThatIsNoObject) {
  const ScratchDirectory scratch;
  EXPECT_EQ(refusal_of(write_tiny_bert(scratch, "m", tiny_weights(), "[]")),
            "config.json: expected an object of configuration keys");
  EXPECT_EQ(refusal_of(write_tiny_bert(scratch, "n", tiny_weights(), "{\n  \"a\": }")),
            "config.json:2:8: invalid JSON: unexpected '}'; expected '[', '{', or a literal");
}

TEST(LoadModel, NamesAMissingConfiguration) {
  const ScratchDirectory scratch;
  const std::string directory = write_tiny_bert(scratch, "m");
  std::filesystem::remove(scratch / "m/config.json");
  EXPECT_EQ(refusal_of(directory), "config.json: cannot open: no such file or directory");
}

TEST(LoadModel, ReplacesTheLabelsWhenAnotherNumberIsAskedFor) {
  const ScratchDirectory scratch;
  State encoder = tiny_weights();
  encoder.erase("classifier.weight");
  encoder.erase("classifier.bias");
  const Model model =
      load_model(write_tiny_bert(scratch, "m", encoder), {.task = "classify", .num_labels = 3});
  EXPECT_THAT(model.label_names, ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(model.state.at("classifier.weight").dims(), ElementsAre(3, 8));
}

TEST(LoadModel, StartsTheClassifierAfreshWhenItsNumberOfLabelsChanges) {
  const ScratchDirectory scratch;
  const Model model = load_model(write_tiny_bert(scratch, "m"), {.num_labels = 3});
  EXPECT_THAT(model.label_names, ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(model.fresh, ElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_THAT(model.left_out, IsEmpty());
}

TEST(LoadModel, NumbersTheLabelsByTheLogitsOfTheGraph) {
  EXPECT_EQ(load_model("mlp:4,8,3").label_names.size(), 3u);
  EXPECT_EQ(refusal("mlp:4,8,3", [] { load_model("mlp:4,8,3", {.num_labels = 2}); }),
            "the model cannot be given 2 labels: its sizes fix 3 logits");
}

TEST(LoadModel, NamesATensorThatIsNotFinite) {
  const ScratchDirectory scratch;
  State weights = tiny_weights();
  weights.at("bert.pooler.dense.bias").mutable_data<float>()[5] = NAN;
  const std::string directory = write_tiny_bert(scratch, "m", weights);
  EXPECT_EQ(refusal_of(directory),
            "tensor \"bert.pooler.dense.bias\" holds nan at index 5: expected finite numbers");
  const Model model = load_model(directory, {.allow_non_finite = true});
  EXPECT_THAT(model.non_finite, ElementsAre("bert.pooler.dense.bias"));
}

TEST(LoadModel, BuildsByNameWithEveryStateFresh) {
  const Model model = load_model("mlp:4,8");
  EXPECT_EQ(model.family->name, "mlp");
  EXPECT_EQ(model.fresh.size(), model.state.size());
  EXPECT_TRUE(model.directory.empty());
}

TEST(LoadModel, SuggestsABuilderWhenThereIsNoSuchDirectory) {
  try {
    load_model("bert-tny");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.message(),
                testing::StartsWith("bert-tny: no such model directory, and no builder has this "
                                    "name; builders: bert-base, "));
    EXPECT_EQ(error.hint(), "did you mean \"bert-tiny\"?");
  }
}

TEST(LoadModel, RefusesABuildersUnknownKey) {
  EXPECT_EQ(refusal("bert-tiny",
                    [] {
                      load_model("bert-tiny", {.config = {{"hiden", std::int64_t{8}}}});
                    })
                .substr(0, 19),
            "unknown attribute \"");
}

}  // namespace
}  // namespace lathe::io
