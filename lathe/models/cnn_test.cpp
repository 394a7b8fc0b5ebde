#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/cnn_layer.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

Graph cnn(std::string_view name) {
  const NamedModel model = find_named_model(name).value();
  return build(*model.family, model.config, {.task = "classify"});
}

TEST(CnnLayer, IsReadWithWhatItsNameLeavesOut) {
  using Kind = CnnLayer::Kind;
  const std::vector<CnnLayer> expected = {
      {.kind = Kind::Convolution, .size = 6, .kernel = 5, .padding = 2},
      {.kind = Kind::Residual, .size = 8, .kernel = 3, .stride = 2, .padding = 1},
      {.kind = Kind::MaxPool, .size = 2},
      {.kind = Kind::AveragePool},
      {.kind = Kind::Linear, .size = 10}};
  EXPECT_EQ(parse_cnn_layers("c6k5p2,r8s2,m2,a,10"), expected);
}

TEST(Cnn, IsLayersInTheirOrder) {
  EXPECT_EQ(print(cnn("cnn:1x6x6,c2k3,m2,5")), R"(lathe-ir 2
symbols B
x = input() : f32[B,1,6,6]
layers.0.weight = state() {init="normal", scale=0.4714045207910317} : f32[2,1,3,3]
layers.0.bias = state() {init="zeros"} : f32[2]
layers.0 = conv2d(x, layers.0.weight, layers.0.bias) {pads=[0,0,0,0], strides=[1,1]} : f32[B,2,4,4]
layers.0.activation = relu(layers.0) : f32[B,2,4,4]
layers.1 = max_pool2d(layers.0.activation) {kernel=[2,2]} : f32[B,2,2,2]
layers.2.flatten = reshape(layers.1) : f32[B,8]
layers.2.weight = state() {init="normal", scale=0.5} : f32[5,8]
layers.2.bias = state() {init="zeros"} : f32[5]
layers.2 = linear(layers.2.flatten, layers.2.weight, layers.2.bias) : f32[B,5]
output logits <- layers.2
)");
}

TEST(Cnn, AddsWhatAResidualReads) {
  const Graph graph = cnn("cnn:3x8x8,r3,r6s2,a,4");
  EXPECT_EQ(print(graph, "layers.0"), "layers.0 = add(layers.0.conv2, x) : f32[B,3,8,8]");
  EXPECT_EQ(print(graph, "layers.1"),
            "layers.1 = add(layers.1.conv2, layers.1.shortcut) : f32[B,6,4,4]");
  EXPECT_EQ(print(graph, "layers.2"),
            "layers.2 = avg_pool2d(layers.1.activation) {kernel=[4,4]} : f32[B,6,1,1]");
}

TEST(Cnn, SaysWhichLayerItCannotRead) {
  const auto refusal = [](const char* name) { return error_text([&] { cnn(name); }); };
  EXPECT_EQ(refusal("cnn:28x28,10"),
            "cnn:28x28,10: expected cnn:CHANNELSxROWSxCOLUMNS,LAYER,..., such as "
            "cnn:1x28x28,c6k5,m2,10");
  for (const char* layer : {"", "c", "c0", "x3", "c6q2", "r8k2", "m", "m2k3", "0", "10x"})
    EXPECT_THROW(parse_cnn_layers(layer), UserError) << layer;
  EXPECT_EQ(refusal("cnn:1x6x6,c2k3"), "layers: expected the last one to be linear");
  EXPECT_EQ(refusal("cnn:1x6x6,10,c2k3,5"), "layers.1: an image is read behind a linear layer");
  EXPECT_THROW(cnn("cnn:1x6x6,c2k9,5"), UserError);
}

}  // namespace
}  // namespace lathe::models
