#include "lathe/io/model_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/json_reader.h"
#include "lathe/core/testing/error_text.h"
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

// What is under its own name in older files stands in an object of its own in newer ones.
TEST(FamilyConfig, IsFoundWhereverFilesHoldIt) {
  const models::ModelFamily& llama = models::FamilyRegistry::instance().at("llama", "family");
  for (const char* config :
       {R"({"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0}})",
        R"({"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})",
        R"({"rope_theta": 5e5, "rope_scaling": {"type": "llama3", "factor": 8}})"}) {
    SCOPED_TRACE(config);
    const Attributes read = read_family_config(llama, parse_json(config));
    EXPECT_EQ(std::get<double>(read.at("rope_theta")), 5e5);
    EXPECT_EQ(std::get<double>(read.at("rope_factor")), 8.0);
    EXPECT_EQ(std::get<std::string>(read.at("rope_type")), "llama3");

    Model model;
    model.family = &llama;
    model.task = "causal-lm";
    model.config = read;
    model.config_text = config;
    const json written = write_config(model), given = parse_json(config);
    for (const char* key : {"rope_parameters", "rope_theta", "rope_scaling"})
      EXPECT_EQ(written.value(key, json()), given.value(key, json())) << key;
  }
  EXPECT_TRUE(read_family_config(llama, parse_json(R"({"rope_scaling": null})")).empty());
}

TEST(FamilyConfig, IsRefusedWhereItsPlacesContradictEachOther) {
  const models::ModelFamily& llama = models::FamilyRegistry::instance().at("llama", "family");
  const auto refusal = [&](const char* config) {
    return error_text([&] { read_family_config(llama, parse_json(config)); });
  };
  EXPECT_EQ(refusal(R"({"rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5}})"),
            "rope_theta is 10000.0 and rope_parameters.rope_theta is 500000.0: expected the same");
  EXPECT_EQ(refusal(R"({"rope_scaling": {"type": "default", "rope_type": "linear"}})"),
            "rope_scaling.rope_type is \"linear\" and rope_scaling.type is \"default\": expected "
            "the same");
  EXPECT_EQ(refusal(R"({"rope_scaling": "linear"})"),
            "rope_scaling is \"linear\": expected an object");
  // Nothing contradicts nothing, and both may stand there.
  const Attributes read = read_family_config(
      llama, parse_json(R"({"rope_theta": null, "rope_parameters": {"rope_theta": 5e5}})"));
  EXPECT_EQ(std::get<double>(read.at("rope_theta")), 5e5);
}

TEST(FamilyConfig, IsWrittenWhereEveryVersionReadsIt) {
  Model model;
  model.family = &models::FamilyRegistry::instance().at("llama", "family");
  model.task = "causal-lm";
  model.config = {{"rope_type", std::string("linear")}, {"rope_factor", 2.0}};
  const json config = write_config(model);
  EXPECT_EQ(config["rope_scaling"], (json{{"rope_type", "linear"}, {"factor", 2.0}}));
  EXPECT_EQ(config["rope_theta"], 10000.0);
  model.config.clear();
  EXPECT_FALSE(write_config(model).contains("rope_scaling"));
}

TEST(FamilyConfig, TellsNullFromNothingWhereItMeansSomething) {
  Model model;
  model.family = &models::FamilyRegistry::instance().at("mistral", "family");
  model.task = "causal-lm";
  model.config_text = R"({"sliding_window": null})";
  model.config = read_family_config(*model.family, parse_json(model.config_text));
  EXPECT_EQ(std::get<std::int64_t>(model.config.at("sliding_window")), 0);
  EXPECT_TRUE(write_config(model)["sliding_window"].is_null());
  EXPECT_TRUE(read_family_config(*model.family, json::object()).empty());
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

// transformers takes "" for a kind without a name, which no list of none has.
TEST(WriteConfig, KeepsListsOfTexts) {
  for (const char* kinds : {R"(["c2p", "p2c"])", "[]", R"("p2c|c2p")"}) {
    Model model;
    model.family = &models::FamilyRegistry::instance().at("deberta", "family");
    model.task = "encode";
    model.config_text = fmt::format(R"({{"pos_att_type": {}}})", kinds);
    model.config = read_family_config(*model.family, parse_json(model.config_text));
    EXPECT_EQ(write_config(model)["pos_att_type"], parse_json(kinds));
  }
}

}  // namespace
}  // namespace lathe::io
