#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/model.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/io/weight_directory.h"

// A family whose files differ from its graph in every way that they can: matrices transposed, names
// without the base model's prefix, buffers, a tied tensor under a second name.
namespace lathe::io {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Model small() {
  return load_model("gpt2-tiny", {.task = "causal-lm",
                                  .config = {{"vocab_size", std::int64_t{11}},
                                             {"n_positions", std::int64_t{8}},
                                             {"n_embd", std::int64_t{8}}}});
}

void expect_same_state(const Model& got, const Model& expected) {
  ASSERT_EQ(got.state.size(), expected.state.size());
  for (const auto& [name, tensor] : expected.state)
    EXPECT_TRUE(identical(got.state.at(name), tensor)) << name;
}

TEST(DecoderDirectory, HoldsMatricesAsOtherProgramsDo) {
  const ScratchDirectory scratch;
  const Model model = small();
  for (const char* name : {"hf", "checkpoint"}) {
    SCOPED_TRACE(name);
    if (name == std::string("hf"))
      write_huggingface(scratch / name, model);
    else
      write_checkpoint(scratch / name, model);
    const State files = read_weights(scratch / name);
    const std::string layer = "transformer.h.0.";
    EXPECT_THAT(files.at(layer + "attn.c_attn.weight").dims(), ElementsAre(8, 24));
    EXPECT_THAT(files.at(layer + "mlp.c_fc.weight").dims(), ElementsAre(8, 32));
    EXPECT_THAT(files.at("transformer.wte.weight").dims(), ElementsAre(11, 8));
    // A square one would be taken for the other without a word.
    EXPECT_EQ(files.at(layer + "attn.c_proj.weight").at(1),
              model.state.at(layer + "attn.c_proj.weight").at(8));
    expect_same_state(load_model((scratch / name).string()), model);
  }
}

TEST(DecoderDirectory, IsReadAsItWasFirstPublished) {
  const ScratchDirectory scratch;
  const Model model = small();
  write_huggingface(scratch / "m", model);
  State published;
  for (const auto& [name, tensor] : read_weights(scratch / "m"))
    published[name.substr(std::string_view("transformer.").size())] = tensor;
  published["h.0.attn.bias"] = Tensor(DType::F32, {1, 1, 8, 8});
  published["h.1.attn.masked_bias"] = Tensor::from<float>({1}, {-1e4f});
  published["lm_head.weight"] = published.at("wte.weight");
  write_safetensors(scratch / "m/model.safetensors", published);

  const Model read = load_model((scratch / "m").string());
  EXPECT_EQ(read.task, "causal-lm");
  EXPECT_THAT(read.fresh, IsEmpty());
  EXPECT_THAT(read.left_out, IsEmpty());
  expect_same_state(read, model);
}

TEST(DecoderDirectory, LooksForTheTableInTheHeadOnlyWhereTheyAreTied) {
  const ScratchDirectory scratch;
  const Model model = small();
  write_huggingface(scratch / "m", model);
  State weights = read_weights(scratch / "m");
  weights["lm_head.weight"] = weights.at("transformer.wte.weight");
  weights.erase("transformer.wte.weight");
  write_safetensors(scratch / "m/model.safetensors", weights);
  expect_same_state(load_model((scratch / "m").string()), model);

  scratch.write("m/config.json",
                R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 8,
                 "n_layer": 2, "n_head": 2, "vocab_size": 11, "n_positions": 8,
                 "tie_word_embeddings": false})");
  const std::string directory = (scratch / "m").string();
  EXPECT_EQ(refusal(directory, [&] { load_model(directory); }),
            "tensor \"transformer.wte.weight\" is missing: expected f32[11,8]");
}

TEST(DecoderDirectory, RefusesTwoTablesWhereTheConfigurationSaysThatThereIsOne) {
  const ScratchDirectory scratch;
  write_huggingface(scratch / "m", small());
  State weights = read_weights(scratch / "m");
  weights["lm_head.weight"] = weights.at("transformer.wte.weight");
  weights.at("lm_head.weight").mutable_data<float>()[3] += 1;
  write_safetensors(scratch / "m/model.safetensors", weights);
  const std::string directory = (scratch / "m").string();
  const auto write_config = [&](std::string_view tie) {
    scratch.write("m/config.json",
                  fmt::format(R"({{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
                                  "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 11,
                                  "n_positions": 8{}}})",
                              tie));
  };
  write_config(R"(, "tie_word_embeddings": true)");
  EXPECT_EQ(refusal(directory, [&] { load_model(directory); }),
            "tensor \"lm_head.weight\" differs from \"transformer.wte.weight\", but config.json "
            "says tie_word_embeddings: expected one tensor");
  // A classifier reads neither as a head.
  EXPECT_NO_THROW(load_model(directory, {.task = "classify", .num_labels = 3}));
  for (const std::string_view tie : {"", R"(, "tie_word_embeddings": false)"}) {
    write_config(tie);
    EXPECT_TRUE(
        identical(load_model(directory).state.at("lm_head.weight"), weights.at("lm_head.weight")));
  }
}

TEST(DecoderDirectory, StartsAClassifierFresh) {
  const ScratchDirectory scratch;
  write_huggingface(scratch / "m", small());
  const Model model = load_model((scratch / "m").string(), {.task = "classify", .num_labels = 3});
  EXPECT_THAT(model.fresh, ElementsAre("score.weight"));
  EXPECT_THAT(model.state.at("score.weight").dims(), ElementsAre(3, 8));
}

}  // namespace
}  // namespace lathe::io
