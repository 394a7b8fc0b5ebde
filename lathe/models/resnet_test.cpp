#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/role.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"
#include "lathe/models/other_names.h"
#include "lathe/models/tensor_names.h"

namespace lathe::models {
namespace {

const ModelFamily& resnet() {
  return FamilyRegistry::instance().at("resnet", "model");
}

Graph built(std::string_view name, std::int64_t labels = 1000) {
  const NamedModel model = find_named_model(name).value();
  return build(*model.family, model.config, {.task = "classify", .num_labels = labels});
}

TEST(ResNet, HasAsManyParametersAsItsAuthorsSay) {
  // Counted by torchvision's models of these names; that of 20 layers by its paper's sizes, with
  // projections beside the two parts that halve an image and one channel in.
  const auto parameters = [](const char* name, std::int64_t labels) {
    return num_elements(built(name, labels), StateRole::Parameter);
  };
  EXPECT_EQ(parameters("resnet18", 1000), 11'689'512);
  EXPECT_EQ(parameters("resnet34", 1000), 21'797'672);
  EXPECT_EQ(parameters("resnet50", 1000), 25'557'032);
  EXPECT_EQ(parameters("resnet101", 1000), 44'549'160);
  EXPECT_EQ(parameters("resnet152", 1000), 60'192'808);
  EXPECT_EQ(parameters("resnet20", 10), 272'186);
}

TEST(ResNet, HalvesItsImagesFiveTimes) {
  const Graph graph = built("resnet50");
  EXPECT_EQ(print(graph, "resnet.embedder.pooler"),
            "resnet.embedder.pooler = max_pool2d(resnet.embedder.embedder.activation) "
            "{kernel=[3,3], pads=[1,1,1,1], strides=[2,2]} : f32[B,64,56,56]");
  EXPECT_EQ(print(graph, "resnet.encoder.stages.1.layers.0.layer.1.convolution"),
            "resnet.encoder.stages.1.layers.0.layer.1.convolution = "
            "conv2d(resnet.encoder.stages.1.layers.0.layer.0.activation, "
            "resnet.encoder.stages.1.layers.0.layer.1.convolution.weight) {pads=[1,1,1,1], "
            "strides=[2,2]} : f32[B,128,28,28]");
  EXPECT_EQ(print(graph, "resnet.pooler"),
            "resnet.pooler = avg_pool2d(resnet.encoder.stages.3.layers.2.activation) "
            "{kernel=[7,7]} : f32[B,2048,1,1]");
}

// As Hugging Face's do: the function of the configuration stands behind the stem and behind sums.
TEST(ResNet, HasReLUsWithinItsBlocksWhateverTheActivation) {
  NamedModel model = find_named_model("resnet50").value();
  model.config["hidden_act"] = std::string("silu");
  const Graph graph = build(*model.family, model.config, {.task = "classify"});
  const auto op = [&](const std::string& name) { return graph.op(graph.at(name)).name; };
  EXPECT_EQ(op("resnet.embedder.embedder.activation"), "silu");
  EXPECT_EQ(op("resnet.encoder.stages.0.layers.1.layer.0.activation"), "relu");
  EXPECT_EQ(op("resnet.encoder.stages.0.layers.1.layer.1.activation"), "relu");
  EXPECT_EQ(op("resnet.encoder.stages.0.layers.1.activation"), "silu");
}

TEST(ResNet, KeepsStatisticsInBuffers) {
  const Graph graph = built("resnet20", 10);
  EXPECT_EQ(print(graph, "resnet.embedder.embedder.normalization"),
            "resnet.embedder.embedder.normalization = "
            "batch_norm(resnet.embedder.embedder.convolution, "
            "resnet.embedder.embedder.normalization.weight, "
            "resnet.embedder.embedder.normalization.bias, "
            "resnet.embedder.embedder.normalization.running_mean, "
            "resnet.embedder.embedder.normalization.running_var) {eps=1e-05} : f32[B,16,28,28]");
  EXPECT_EQ(num_elements(graph, StateRole::Buffer), 2 * (16 * 7 + 32 * 7 + 64 * 7));
}

TEST(ResNet, IsMadeForOtherImages) {
  const Graph graph = built("resnet:20,3x32x32", 10);
  EXPECT_EQ(print(graph, "pixel_values"), "pixel_values = input() : f32[B,3,32,32]");
  for (const char* name : {"resnet:20", "resnet:19,3x32x32", "resnet:20,32x32", "resnet:20,3x0x3"})
    EXPECT_EQ(error_text([&] { built(name); }),
              std::string(name) +
                  ": expected resnet:DEPTH,CHANNELSxROWSxCOLUMNS, with a depth of 18, 20, 34, 50, "
                  "101 or 152, such as resnet:18,3x64x64");
}

TEST(ResNet, RefusesSizesThatNoModelHas) {
  const auto refusal = [](const char* config) {
    return error_text([&] { build(resnet(), parse_attributes(config), {.task = "classify"}); });
  };
  EXPECT_EQ(refusal("depths=[1,1]"),
            "hidden_sizes has 4 stages and depths 2: expected as many, at least 1");
  EXPECT_EQ(refusal("image_size=[224]"), "image_size: expected rows and columns");
  EXPECT_EQ(refusal("hidden_sizes=[6], depths=[1]"),
            "hidden_sizes holds 6: expected multiples of 4 for bottlenecks");
  EXPECT_EQ(refusal("layer_type=\"wide\""),
            "unknown layer_type \"wide\"; known: basic, bottleneck");
}

TEST(ResNet, KnowsWhatTorchvisionCallsItsTensors) {
  const std::pair<const char*, const char*> names[] = {
      {"conv1.weight", "resnet.embedder.embedder.convolution.weight"},
      {"bn1.running_mean", "resnet.embedder.embedder.normalization.running_mean"},
      {"layer1.0.conv1.weight", "resnet.encoder.stages.0.layers.0.layer.0.convolution.weight"},
      {"layer3.22.bn3.bias", "resnet.encoder.stages.2.layers.22.layer.2.normalization.bias"},
      {"layer2.0.downsample.0.weight",
       "resnet.encoder.stages.1.layers.0.shortcut.convolution.weight"},
      {"layer2.0.downsample.1.running_var",
       "resnet.encoder.stages.1.layers.0.shortcut.normalization.running_var"},
      {"fc.bias", "classifier.1.bias"}};
  for (const auto& [theirs, ours] : names) {
    EXPECT_EQ(current_name(resnet(), theirs), ours);
    EXPECT_EQ(name_elsewhere(resnet(), ours), theirs);
  }
  for (const char* other : {"layer0.0.conv1.weight", "layer1.x.conv1.weight", "layers.1", ""})
    EXPECT_EQ(current_name(resnet(), other), other);
}

}  // namespace
}  // namespace lathe::models
