#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

Graph mlp(std::string_view name, std::vector<std::string> inputs = {}) {
  const NamedModel model = find_named_model(name).value();
  return build(*model.family, model.config, {.task = "classify", .inputs = std::move(inputs)});
}

TEST(Mlp, IsALinearAndAReluForTwoSizes) {
  EXPECT_EQ(print(mlp("mlp:4,8")), R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
layers.0.weight = state() {init="uniform", scale=0.5} : f32[8,4]
layers.0.bias = state() {init="uniform", scale=0.5} : f32[8]
layers.0 = linear(x, layers.0.weight, layers.0.bias) : f32[B,8]
layers.0.activation = relu(layers.0) : f32[B,8]
output logits <- layers.0.activation
)");
}

TEST(Mlp, HasNoReluAfterItsLastLayer) {
  const Graph graph = mlp("mlp:784,256,128,10");
  EXPECT_EQ(graph.nodes_of("linear").size(), 3u);
  EXPECT_EQ(graph.nodes_of("relu").size(), 2u);
  EXPECT_EQ(graph.name(*graph.output("logits")), "layers.2");
}

TEST(Mlp, TakesAnyActivation) {
  EXPECT_EQ(print(mlp("mlp:4,8,activation=tanh"), "layers.0.activation"),
            "layers.0.activation = tanh(layers.0) : f32[B,8]");
  EXPECT_EQ(print(mlp("mlp:4,8,8,8,activation=rrelu"), "layers.1.activation"),
            "layers.1.activation = rrelu(layers.1) {site=1} : f32[B,8]");
  EXPECT_THROW(mlp("mlp:4,8,activation=rulu"), UserError);
}

TEST(Mlp, HasALossWhereItHasLabels) {
  const Graph graph = mlp("mlp:4,3", {"x", "labels"});
  EXPECT_EQ(print(graph, "labels"), "labels = input() : i32[B]");
  EXPECT_EQ(print(graph, "loss"), "loss = div(loss/cross_entropy#0, loss/cross_entropy#1) : f32[]");
  EXPECT_FALSE(mlp("mlp:4,3").output("loss"));
}

TEST(Mlp, SaysWhichSizeItCannotRead) {
  const auto refusal = [](const char* name) { return error_text([&] { find_named_model(name); }); };
  EXPECT_EQ(refusal("mlp:4,x"),
            "mlp:4,x: \"x\" is no layer size: expected mlp:inputs,hidden,...,outputs");
  EXPECT_EQ(refusal("mlp:4,0"),
            "mlp:4,0: \"0\" is no layer size: expected mlp:inputs,hidden,...,outputs");
  EXPECT_EQ(refusal("mlp:4"), "mlp:4: expected mlp:inputs,...,outputs with at least two sizes");
  EXPECT_EQ(refusal("mlp:"), "mlp:: expected mlp:inputs,...,outputs with at least two sizes");
}

}  // namespace
}  // namespace lathe::models
