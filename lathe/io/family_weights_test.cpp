#include "lathe/io/family_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lathe/io/model.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::io {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

const models::ModelFamily& bert() {
  return models::FamilyRegistry::instance().at("bert", "model");
}

Tensor pair(float a, float b) {
  return Tensor::from<float>({2}, {a, b});
}

TEST(ReadTensorNames, TurnsOldNamesIntoTodays) {
  const State read = read_tensor_names(bert(), {{"x.LayerNorm.gamma", pair(1, 2)},
                                                {"x.LayerNorm.beta", pair(3, 4)},
                                                {"x.gamma", pair(5, 6)},
                                                {"bert.embeddings.position_ids", pair(0, 1)}});
  ASSERT_EQ(read.size(), 3u);
  EXPECT_TRUE(identical(read.at("x.LayerNorm.weight"), pair(1, 2)));
  EXPECT_TRUE(identical(read.at("x.LayerNorm.bias"), pair(3, 4)));
  EXPECT_TRUE(identical(read.at("x.gamma"), pair(5, 6)));
}

TEST(ReadTensorNames, RefusesATensorUnderBothNames) {
  EXPECT_EQ(refusal("",
                    [] {
                      read_tensor_names(bert(), {{"LayerNorm.gamma", pair(1, 2)},
                                                 {"LayerNorm.weight", pair(3, 4)}});
                    }),
            "tensor \"LayerNorm.weight\": \"LayerNorm.weight\" is there already, under its old or "
            "its new name");
}

// A family whose files hold its matrices as [inputs, outputs].
models::ModelFamily turned() {
  models::ModelFamily family = bert();
  family.naming.transposed = {"dense.weight"};
  return family;
}

TEST(FindTensor, TurnsWhatFilesHoldTransposed) {
  const State file{{"a.dense.weight", Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6})}};
  const auto found = find_tensor(turned(), {}, file, "a.dense.weight");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->value.dims(), ElementsAre(3, 2));
  EXPECT_THAT(found->value.data<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  const State back = to_file_layout(turned(), {{"a.dense.weight", found->value}});
  EXPECT_TRUE(identical(back.at("a.dense.weight"), file.at("a.dense.weight")));
}

TEST(FindTensor, LooksForTheBaseModelsNameToo) {
  const State file{{"pooler.bias", pair(1, 2)}};
  EXPECT_EQ(find_tensor(bert(), {}, file, "bert.pooler.bias")->name, "pooler.bias");
  EXPECT_FALSE(find_tensor(bert(), {}, file, "bert.other"));
}

TEST(PartsOfBase, AreNoHeadsOfOtherTasks) {
  const std::vector<std::string> names{"bert.encoder.layer.9.output.dense.bias", "bert.pooler.bias",
                                       "cls.seq_relationship.bias", "qa_outputs.bias"};
  State file{{"bert.embeddings.LayerNorm.bias", pair(1, 2)}};
  for (const std::string& name : names) file[name] = pair(1, 2);
  EXPECT_THAT(parts_of_base(bert(), file, names), ElementsAre(names[0]));
}

TEST(FindNonFinite, GivesTheFirstIndex) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(find_non_finite(pair(1, 2)), std::nullopt);
  EXPECT_EQ(find_non_finite(pair(1, nan)), 1);
  EXPECT_EQ(find_non_finite(pair(-std::numeric_limits<float>::infinity(), nan)), 0);
  EXPECT_EQ(find_non_finite(Tensor::from<std::int32_t>({1}, {7})), std::nullopt);
  EXPECT_EQ(find_non_finite(pair(1, nan).converted(DType::BF16)), 1);
  EXPECT_EQ(find_nan(pair(-std::numeric_limits<float>::infinity(), nan)), 1);
}

// The tiny model as one for masked language modelling, with its decoder's table stored as well.
State with_decoder(float shift) {
  State weights = tiny_weights();
  weights["cls.predictions.bias"] = Tensor(DType::F32, {20});
  weights["cls.predictions.transform.dense.weight"] = Tensor(DType::F32, {8, 8});
  weights["cls.predictions.transform.dense.bias"] = Tensor(DType::F32, {8});
  weights["cls.predictions.transform.LayerNorm.weight"] = Tensor(DType::F32, {8});
  weights["cls.predictions.transform.LayerNorm.bias"] = Tensor(DType::F32, {8});
  Tensor table = weights.at("bert.embeddings.word_embeddings.weight");
  table.mutable_data<float>()[3] += shift;
  weights["cls.predictions.decoder.weight"] = table;
  weights["cls.predictions.decoder.bias"] = weights.at("cls.predictions.bias");
  return weights;
}

TEST(TiedTensors, AreOneWhileTheyAreTheSame) {
  const ScratchDirectory scratch;
  const Model model = load_model(write_tiny_bert(scratch, "m", with_decoder(0)), {.task = "mlm"});
  EXPECT_FALSE(model.state.contains("cls.predictions.decoder.weight"));
  EXPECT_THAT(model.left_out, Not(Contains("cls.predictions.decoder.weight")));
  EXPECT_THAT(model.left_out, Not(Contains("cls.predictions.decoder.bias")));
}

TEST(TiedTensors, AreTwoStatesWhereTheyDiffer) {
  const ScratchDirectory scratch;
  const State weights = with_decoder(1);
  const Model model = load_model(write_tiny_bert(scratch, "m", weights), {.task = "mlm"});
  ASSERT_TRUE(model.state.contains("cls.predictions.decoder.weight"));
  EXPECT_TRUE(identical(model.state.at("cls.predictions.decoder.weight"),
                        weights.at("cls.predictions.decoder.weight")));
  EXPECT_EQ(model.graph.name(model.graph.input(model.graph.at("cls.predictions.decoder"), 1)),
            "cls.predictions.decoder.weight");

  write_huggingface(scratch / "copy", model);
  const Model copy = load_model((scratch / "copy").string());
  EXPECT_TRUE(identical(copy.state.at("cls.predictions.decoder.weight"),
                        weights.at("cls.predictions.decoder.weight")));
}

TEST(TiedTensors, TakeTheDecodersOwnBiasWhereThereAreTwo) {
  const ScratchDirectory scratch;
  State weights = with_decoder(0);
  weights.at("cls.predictions.decoder.bias").mutable_data<float>()[0] = 1;
  const Model model = load_model(write_tiny_bert(scratch, "m", weights), {.task = "mlm"});
  EXPECT_EQ(model.state.at("cls.predictions.decoder.bias").at(0), 1);
  EXPECT_THAT(model.left_out, Contains("cls.predictions.bias"));
}

TEST(TiedTensors, AreAllFoundInAnUntiedFileWithOneNameForTheBias) {
  const ScratchDirectory scratch;
  State weights = with_decoder(1);
  weights.at("cls.predictions.bias").mutable_data<float>()[3] = 2;
  weights.erase("cls.predictions.decoder.bias");
  const Model model = load_model(write_tiny_bert(scratch, "m", weights), {.task = "mlm"});
  EXPECT_EQ(model.state.at("cls.predictions.decoder.bias").at(3), 2);
  EXPECT_THAT(model.left_out, Not(Contains("cls.predictions.bias")));
}

TEST(TiedTensors, AreFoundUnderTheSecondNameAlone) {
  const ScratchDirectory scratch;
  State weights = with_decoder(0);
  const Tensor table = weights.at("bert.embeddings.word_embeddings.weight");
  weights.erase("bert.embeddings.word_embeddings.weight");
  const Model model = load_model(write_tiny_bert(scratch, "m", weights), {.task = "mlm"});
  EXPECT_TRUE(identical(model.state.at("bert.embeddings.word_embeddings.weight"), table));
}

}  // namespace
}  // namespace lathe::io
