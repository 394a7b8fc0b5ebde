#include "lathe/io/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/json_reader.h"
#include "lathe/io/testing/refusal.h"

namespace lathe::io {
namespace {

using nlohmann::json;
using testing::ElementsAre;

std::string label_refusal(const char* config) {
  return refusal("", [&] { read_label_names(parse_json(config)); });
}

TEST(LabelNames, AreNumberedWhereTheyHaveNoNames) {
  EXPECT_THAT(read_label_names(parse_json("{}")), ElementsAre("LABEL_0", "LABEL_1"));
  EXPECT_THAT(read_label_names(parse_json(R"({"num_labels": 3})")),
              ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(read_label_names(parse_json(R"({"num_labels": null, "id2label": null})")),
              ElementsAre("LABEL_0", "LABEL_1"));
}

TEST(LabelNames, ComeInTheOrderOfTheirNumbers) {
  json config = {{"id2label", json::object()}};
  for (int i = 0; i < 11; ++i) config["id2label"][std::to_string(i)] = std::string(1, 'a' + i);
  EXPECT_THAT(read_label_names(config),
              ElementsAre("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"));
}

TEST(LabelNames, RefuseKeysThatAreNoLabels) {
  EXPECT_EQ(label_refusal(R"({"id2label": {"0": "bad", "2": "good"}})"),
            "id2label: \"2\" is no label: expected numbers 0 to 1 with a name each");
  EXPECT_EQ(label_refusal(R"({"id2label": {"good": 1}})"),
            "id2label: \"good\" is no label: expected numbers 0 to 0 with a name each");
  EXPECT_EQ(label_refusal(R"({"id2label": {"0": "bad", "1st": "good"}})"),
            "id2label: \"1st\" is no label: expected numbers 0 to 1 with a name each");
  EXPECT_EQ(label_refusal(R"({"id2label": {"0": "bad", " 1": "good"}})"),
            "id2label: \" 1\" is no label: expected numbers 0 to 1 with a name each");
  EXPECT_EQ(label_refusal(R"({"id2label": {"0": "bad", "00": "good"}})"),
            "id2label: \"00\" is no label: expected numbers 0 to 1 with a name each");
  EXPECT_EQ(label_refusal(R"({"id2label": {"-1": "bad"}})"),
            "id2label: \"-1\" is no label: expected numbers 0 to 0 with a name each");
  EXPECT_EQ(label_refusal(R"({"id2label": {"99999999999999999999": "bad"}})"),
            "id2label: \"99999999999999999999\" is no label: expected numbers 0 to 0 with a name "
            "each");
  EXPECT_EQ(label_refusal(R"({"id2label": {"0": 5}})"),
            "id2label: \"0\" is no label: expected numbers 0 to 0 with a name each");
}

TEST(LabelNames, RefuseAListOrAText) {
  EXPECT_EQ(label_refusal(R"({"id2label": ["bad", "good"]})"),
            "id2label: expected an object of numbers and names");
}

TEST(LabelNames, RefuseAnImpossibleCount) {
  for (const char* count : {"0", "-1", "1000001", "18446744073709551615", "2.5", "\"2\""})
    EXPECT_EQ(label_refusal(fmt::format("{{\"num_labels\": {}}}", count).c_str()),
              fmt::format("num_labels is {}: expected 1 to 1000000", count));
}

TEST(Task, FollowsTheArchitecture) {
  const models::ModelFamily& bert = models::FamilyRegistry::instance().at("bert", "family");
  const auto task = [&](const char* architecture) {
    return read_task(bert, {{"architectures", json::array({architecture})}}).value_or("none");
  };
  EXPECT_EQ(task("BertForSequenceClassification"), "classify");
  EXPECT_EQ(task("BertForMaskedLM"), "mlm");
  EXPECT_EQ(task("BertForPreTraining"), "mlm");
  EXPECT_EQ(task("BertModel"), "encode");
  EXPECT_EQ(task("BertForQuestionAnswering"), "none");
  EXPECT_FALSE(read_task(bert, json::object()));
  EXPECT_FALSE(read_task(bert, {{"architectures", "BertModel"}}));
}

TEST(Task, IsThatOfADecoderOnlyWhereItLooksBackAlone) {
  const models::ModelFamily& bert = models::FamilyRegistry::instance().at("bert", "family");
  const auto task = [&](const char* config) {
    return read_task(bert, parse_json(config)).value_or("none");
  };
  EXPECT_EQ(task(R"({"architectures": ["BertLMHeadModel"], "is_decoder": true})"), "causal-lm");
  EXPECT_EQ(task(R"({"architectures": ["BertLMHeadModel"]})"), "mlm");
  EXPECT_EQ(task(R"({"architectures": ["BertForMaskedLM"], "is_decoder": true})"), "mlm");
  EXPECT_EQ(task(R"({"is_decoder": true})"), "causal-lm");
  EXPECT_EQ(task(R"({"is_decoder": false})"), "none");
}

TEST(WriteConfig, RenewsTaskSizesAndLabelsAndKeepsTheRest) {
  Model model;
  model.family = &models::FamilyRegistry::instance().at("bert", "family");
  model.task = "classify";
  model.label_names = {"bad", "good"};
  model.config = {{"hidden_size", std::int64_t{8}}};
  model.config_text = R"({"hidden_size": 4, "num_labels": 7, "torch_dtype": "float16", "_x": [1]})";
  const json config = write_config(model);

  EXPECT_EQ(config["hidden_size"], 8);
  EXPECT_EQ(config["_x"], json::array({1}));
  EXPECT_EQ(config["architectures"], json::array({"BertForSequenceClassification"}));
  EXPECT_EQ(config["id2label"], (json{{"0", "bad"}, {"1", "good"}}));
  EXPECT_EQ(config["label2id"], (json{{"bad", 0}, {"good", 1}}));
  EXPECT_EQ(config["dtype"], "float32");
  EXPECT_FALSE(config.contains("torch_dtype"));
  EXPECT_FALSE(config.contains("num_labels"));
  EXPECT_FALSE(config.contains("classifier_dropout"));
}

}  // namespace
}  // namespace lathe::io
