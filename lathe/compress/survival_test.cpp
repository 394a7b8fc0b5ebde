#include <gtest/gtest.h>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/io/testing/tiny_bert.h"

// Whatever was done to a model's graph outlives whatever is done with the model, or is refused in
// one line; nothing is lost without a word. Every kind of change against every way to go on.
namespace lathe::compress {
namespace {

// The linears that are changed: all but the classifier, or the classifier alone.
enum class Where { Encoder, Classifier };

const char* pattern(Where where) {
  return where == Where::Encoder ? "encoder" : "classifier";
}

std::vector<NodeId> linears(const Graph& graph, Where where) {
  std::vector<NodeId> found;
  for (const NodeId id : graph.nodes_of("linear"))
    if (graph.name(id).find(pattern(where)) != std::string::npos) found.push_back(id);
  return found;
}

// Every third weight is cut, by a mask as somebody who writes the graph by hand would put it there.
void add_masks(io::Model& model, Where where) {
  Graph& graph = model.graph;
  for (const NodeId linear : linears(graph, where)) {
    const std::string name = graph.name(linear);
    const Value weight = graph.input(linear, 1);
    const Value mask{graph.insert_before(linear, {.name = name + ".mask",
                                                  .op = "state",
                                                  .inputs = {},
                                                  .attributes = {{"role", std::string("mask")}},
                                                  .types = {graph.type(weight)}}),
                     0};
    const NodeId product = graph.insert_before(
        linear, {.name = name + "/masked", .op = "mul", .inputs = {weight, mask}});
    graph.set_input(linear, 1, {product, 0});
    Tensor values(DType::F32, graph.type(weight).dims({}));
    for (std::size_t i = 0; i < values.mutable_data<float>().size(); ++i)
      values.mutable_data<float>()[i] = i % 3 == 0 ? 0 : 1;
    model.state[name + ".mask"] = values;
  }
}

void add_lora(io::Model& model, Where where) {
  insert_lora(model.graph, model.state, {.rank = 2, .alpha = 4, .targets = {pattern(where)}}, 1);
  for (const LoraPath& path : find_lora(model.graph))
    for (float& value : model.state.at(lora_b_name(path.name)).mutable_data<float>()) value = 0.25f;
}

void add_quantizers(io::Model& model, Where where) {
  insert_quantizers(
      model.graph, model.state,
      {{.by = QuantizationRule::By::Regex,
        .match = pattern(where),
        .formats = {{TensorRole::Weights, "int:4,channel"}, {TensorRole::Inputs, "mxint:8"}}}});
  set_parameter_scales(model.graph, model.state, {});
}

void add_codes(io::Model& model, Where where) {
  add_quantizers(model, where);
  pack_model(model);
}

struct Kind {
  const char* name;
  void (*apply)(io::Model&, Where);
  bool is_exported;  ///< other programs can be given the model
};
const Kind kKinds[] = {{"mask", add_masks, true},
                       {"lora", add_lora, false},
                       {"quantizers", add_quantizers, false},
                       {"codes", add_codes, false}};

struct Case {
  Kind kind;
  Where where;
};

class EveryChange : public testing::TestWithParam<Case> {
 protected:
  EveryChange() : plain_(io::load_model(io::write_tiny_bert(scratch_, "m"))), model_(plain_) {
    GetParam().kind.apply(model_, GetParam().where);
    io::write_checkpoint(scratch_ / "c", model_);
  }
  std::string checkpoint() const { return (scratch_ / "c").string(); }

  // What the model gives at a node for three texts of different lengths.
  static Tensor answer(const io::Model& model, const std::string& node) {
    Graph graph = model.graph;
    for (std::vector outputs = graph.outputs(); const auto& [name, value] : outputs)
      graph.remove_output(name);
    graph.set_output("answer", {graph.at(node), 0});
    run_pass("remove-dead-nodes", graph);
    const Feed all{
        {"input_ids", Tensor::from<std::int32_t>({3, 4}, {2, 5, 7, 3, 2, 9, 3, 6, 2, 11, 12, 13})},
        {"attention_mask",
         Tensor::from<std::int32_t>({3, 4}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})},
        {"labels", Tensor::from<std::int32_t>({3}, {0, 1, 1})}};
    Feed feed;
    for (const NodeId id : graph.nodes_of("input")) feed[graph.name(id)] = all.at(graph.name(id));
    return engine::make_executor(graph, model.state, {.device = "reference"})
        ->run(feed)
        .at("answer");
  }
  static std::string logits_of(const io::Model& model) {
    return model.graph.name(*model.graph.output("logits"));
  }
  void expect_same_answers(const io::Model& other) const {
    EXPECT_TRUE(identical(answer(other, logits_of(other)), answer(model_, logits_of(model_))));
  }

  io::ScratchDirectory scratch_;
  io::Model plain_, model_;
};

// The message of a refusal, which is one line; empty when nothing is refused.
template <typename Body>
std::string refusal_line(Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.message();
    return error.message();
  }
  return "";
}

TEST_P(EveryChange, ChangesTheAnswers) {
  EXPECT_FALSE(identical(answer(model_, logits_of(model_)), answer(plain_, "classifier")));
}

TEST_P(EveryChange, SurvivesSavingAndLoading) {
  const io::Model loaded = io::load_model(checkpoint());
  EXPECT_EQ(print(loaded.graph), print(model_.graph));
  expect_same_answers(loaded);
}

TEST_P(EveryChange, SurvivesOtherInputs) {
  expect_same_answers(io::load_model(checkpoint(), {.inputs = {"input_ids"}}));
  expect_same_answers(
      io::load_model(checkpoint(), {.inputs = {"input_ids", "attention_mask", "labels"}}));
}

TEST_P(EveryChange, SurvivesAnotherNumberOfLabelsOrIsNamed) {
  io::Model loaded;
  const std::string refusal =
      refusal_line([&] { loaded = io::load_model(checkpoint(), {.num_labels = 3}); });
  if (GetParam().where == Where::Classifier) {
    EXPECT_NE(refusal.find("layer \"classifier\" cannot be given 3 labels"), std::string::npos)
        << refusal;
    return;
  }
  ASSERT_EQ(refusal, "");
  // The classifier is fresh; everything before it must be what it was.
  const std::string before = "bert.pooler.activation";
  EXPECT_TRUE(identical(answer(loaded, before), answer(model_, before)));
  EXPECT_FALSE(identical(answer(loaded, before), answer(plain_, before)));
  EXPECT_EQ(answer(loaded, "classifier").dims(), (std::vector<std::int64_t>{3, 3}));
}

TEST_P(EveryChange, IsNotLoadedForAnotherTask) {
  const std::string refusal = refusal_line([&] { io::load_model(checkpoint(), {.task = "mlm"}); });
  EXPECT_NE(refusal.find("is not the one that bert builds: node \""), std::string::npos) << refusal;
}

TEST_P(EveryChange, SurvivesExportOrIsNamed) {
  const std::string refusal =
      refusal_line([&] { io::write_huggingface(scratch_ / "export", model_); });
  if (!GetParam().kind.is_exported) {
    EXPECT_NE(refusal.find("other programs would run another model"), std::string::npos) << refusal;
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "export"));
    return;
  }
  ASSERT_EQ(refusal, "");
  const io::Model loaded = io::load_model((scratch_ / "export").string());
  EXPECT_EQ(print(loaded.graph), print(plain_.graph));
  expect_same_answers(loaded);
}

TEST_P(EveryChange, SurvivesPasses) {
  io::Model loaded = io::load_model(checkpoint());
  PassContext context;
  context.state = &loaded.state;
  run_pipeline(loaded.graph,
               parse_pipeline("remove-dropout,eliminate-common-subexpressions,remove-dead-nodes"),
               context, [](const PassInvocation&, const PassResult&) {});
  loaded.graph = parse_graph(print(loaded.graph));
  expect_same_answers(loaded);
}

std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const Kind& kind : kKinds)
    for (const Where where : {Where::Encoder, Where::Classifier}) cases.push_back({kind, where});
  return cases;
}
std::string case_name(const testing::TestParamInfo<Case>& one) {
  return fmt::format("{}_{}", one.param.kind.name, pattern(one.param.where));
}
INSTANTIATE_TEST_SUITE_P(All, EveryChange, testing::ValuesIn(every_case()), case_name);

}  // namespace
}  // namespace lathe::compress
