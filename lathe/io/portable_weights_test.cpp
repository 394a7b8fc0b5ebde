#include "lathe/io/portable_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/pass.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::io {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

constexpr const char* kOther = "other programs would run another model, the one that mlp builds: ";

// Multiplies the weight of a layer with a mask, as a hand-written graph does.
void add_mask(Model& model, const std::string& layer, Tensor mask) {
  Graph& graph = model.graph;
  const NodeId linear = graph.at(layer);
  const Value weight = graph.input(linear, 1);
  const NodeId state = graph.insert_before(linear, {.name = layer + ".mask",
                                                    .op = "state",
                                                    .inputs = {},
                                                    .attributes = {{"role", std::string("mask")}},
                                                    .types = {graph.type(weight)}});
  const NodeId product = graph.insert_before(
      linear, {.name = layer + "/masked", .op = "mul", .inputs = {weight, {state, 0}}});
  graph.set_input(linear, 1, {product, 0});
  model.state[layer + ".mask"] = std::move(mask);
}

Model small() {
  Model model = load_model("mlp:2,2");
  model.state["layers.0.weight"] = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  return model;
}

TEST(PortableWeights, AreTheStatesOfAPlainModel) {
  const ScratchDirectory scratch;
  Model model = load_model(write_tiny_bert(scratch, "m"));
  run_pass("remove-dropout", model.graph);
  const State weights = portable_weights(model);
  ASSERT_EQ(weights.size(), model.state.size());
  for (const auto& [name, tensor] : model.state) EXPECT_TRUE(identical(weights.at(name), tensor));
}

TEST(PortableWeights, HoldAMaskedParameterAsItsValue) {
  Model model = small();
  add_mask(model, "layers.0", Tensor::from<float>({2, 2}, {1, 0, 0, 1}));
  const State weights = portable_weights(model);
  EXPECT_EQ(weights.size(), 2u);
  EXPECT_THAT(weights.at("layers.0.weight").data<float>(), ElementsAre(1, 0, 0, 4));
}

TEST(PortableWeights, RefuseANodeThatTheFamilyDoesNotHave) {
  Model model = small();
  Graph& graph = model.graph;
  const NodeId linear = graph.at("layers.0");
  const NodeId added = graph.insert_after(
      linear, {.name = "layers.0/more", .op = "add", .inputs = {{linear, 0}, {linear, 0}}});
  graph.set_input(graph.at("layers.0.activation"), 0, {added, 0});
  EXPECT_EQ(refusal("", [&] { portable_weights(model); }),
            std::string(kOther) +
                "node \"layers.0.activation\" reads \"layers.0/more\" (add) "
                "instead of \"layers.0\" (linear)");
}

TEST(PortableWeights, RefuseAWeightFromElsewhere) {
  Model model = small();
  Graph& graph = model.graph;
  const NodeId linear = graph.at("layers.0");
  const NodeId other = graph.insert_before(linear, {.name = "other",
                                                    .op = "state",
                                                    .inputs = {},
                                                    .types = {graph.type(graph.input(linear, 1))}});
  graph.set_input(linear, 1, {other, 0});
  model.state["other"] = Tensor(DType::F32, {2, 2});
  EXPECT_EQ(refusal("", [&] { portable_weights(model); }),
            std::string(kOther) +
                "node \"layers.0\" reads \"other\" (state) instead of \"layers.0.weight\"");
}

TEST(PortableWeights, RefuseAStateThatWouldBeLeftOver) {
  Model model = small();
  model.graph.add({.name = "spare", .op = "state", .inputs = {}, .types = {{DType::F32, {2}}}});
  model.state["spare"] = Tensor(DType::F32, {2});
  EXPECT_EQ(refusal("", [&] { portable_weights(model); }),
            std::string(kOther) + "it has no place for \"spare\" (state)");
}

TEST(PortableWeights, RefuseAnotherOutput) {
  Model model = small();
  model.graph.set_output("hidden", {model.graph.at("layers.0"), 0});
  EXPECT_EQ(refusal("", [&] { portable_weights(model); }),
            std::string(kOther) + "the model has the output \"hidden\" too");
}

TEST(PortableWeights, RefuseWhatOtherProgramsWouldPassOver) {
  const Model model = load_model(
      "bert-tiny", {.task = "classify", .config = {{"lathe_norm_place", std::string("pre")}}});
  EXPECT_EQ(refusal("", [&] { portable_weights(model); }),
            "other programs would run another model, the one that bert builds: they do not know "
            "lathe_norm_place=\"pre\"");
}

TEST(PortableWeights, RefuseATableThatIsReadInTwoWays) {
  const ScratchDirectory scratch;
  Model model = load_model(write_tiny_bert(scratch, "m"), {.task = "mlm"});
  add_mask(model, "cls.predictions.decoder", Tensor(DType::F32, {20, 8}));
  EXPECT_THAT(refusal("", [&] { portable_weights(model); }),
              StartsWith("other programs would run another model, the one that bert builds: "
                         "\"bert.embeddings.word_embeddings.weight\" is read as "));
}

}  // namespace
}  // namespace lathe::io
