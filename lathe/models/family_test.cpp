#include "lathe/models/family.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::models {
namespace {

struct Choice {
  std::string model;
  std::string task;
};

std::vector<Choice> every_choice() {
  std::vector<Choice> choices;
  for (const auto& [family_name, family] : FamilyRegistry::instance().all())
    for (const TaskRecord& task : family.tasks) {
      for (const auto& [preset, config] : family.presets) choices.push_back({preset, task.name});
      if (family_name == "mlp") choices.push_back({"mlp:4,8,3", task.name});
    }
  return choices;
}

class EveryModel : public testing::TestWithParam<Choice> {};

TEST_P(EveryModel, BuildsAGraphThatIsValidAndSurvivesTheTextForm) {
  const NamedModel model = find_named_model(GetParam().model).value();
  const Graph graph = build(*model.family, model.config, {.task = GetParam().task});
  EXPECT_FALSE(graph.outputs().empty());
  const std::string text = print(graph);
  const Graph read = parse_graph(text);
  EXPECT_EQ(print(read), text);
  EXPECT_NO_THROW(verify(read));
}

TEST_P(EveryModel, HasEveryInputItCanHave) {
  const NamedModel model = find_named_model(GetParam().model).value();
  const TaskRecord& task = find_task(*model.family, GetParam().task);
  std::vector<std::string> inputs = task.inputs;
  inputs.insert(inputs.end(), task.optional_inputs.begin(), task.optional_inputs.end());
  const Graph graph = build(*model.family, model.config, {.task = task.name, .inputs = inputs});
  EXPECT_EQ(graph.nodes_of("input").size(), inputs.size());
}

std::string choice_name(const testing::TestParamInfo<Choice>& info) {
  std::string name = info.param.model + '_' + info.param.task;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Registry, EveryModel, testing::ValuesIn(every_choice()), choice_name);

TEST(NamedModels, AreSortedAndFound) {
  const std::vector<std::string> names = named_models();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"bert-base", "bert-tiny", "mlp:..."})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  EXPECT_FALSE(find_named_model("bert-huge"));
  EXPECT_FALSE(find_named_model("mlp"));
  EXPECT_EQ(to_text(find_named_model("bert-tiny")->config),
            "{hidden_size=128, intermediate_size=512, num_attention_heads=2, num_hidden_layers=2}");
}

TEST(FindTask, ListsTheTasksOfTheFamily) {
  const ModelFamily& bert = FamilyRegistry::instance().at("bert", "model");
  EXPECT_EQ(error_text([&] { find_task(bert, "clasify"); }),
            "unknown task of bert \"clasify\"; known: classify, tokens, mlm, causal-lm, encode\n"
            "hint: did you mean \"classify\"?");
}

TEST(Build, NamesTheNearestInput) {
  const NamedModel model = *find_named_model("bert-tiny");
  EXPECT_EQ(error_text([&] {
              build(*model.family, model.config,
                    {.task = "classify", .inputs = {"input_ids", "token_types_ids"}});
            }),
            "unknown input of bert for classify \"token_types_ids\"; known: attention_mask, "
            "input_ids, labels, token_type_ids\nhint: did you mean \"token_type_ids\"?");
}

TEST(Build, RefusesConfigurationsOfTheWrongKind) {
  const ModelFamily& bert = FamilyRegistry::instance().at("bert", "model");
  const auto refusal = [&](const char* config) {
    return error_text([&] { build(bert, parse_attributes(config), {.task = "encode"}); });
  };
  EXPECT_EQ(refusal("hidden_size=1.5"), "attribute hidden_size=1.5: expected an integer");
  EXPECT_TRUE(refusal("hiden_size=64").ends_with("hint: did you mean \"hidden_size\"?"));
}

}  // namespace
}  // namespace lathe::models
