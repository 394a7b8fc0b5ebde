#include <charconv>
#include <cmath>

#include "lathe/models/config_checks.h"
#include "lathe/models/family.h"
#include "lathe/models/module_builder.h"
#include "lathe/models/other_names.h"

namespace lathe::models::resnet {
namespace {

// The residual networks of He et al. 2015 as Hugging Face evaluates them. Nodes carry the module
// paths of its state dictionary; torchvision's names of the same tensors are a table below. Where a
// stage halves its images, the 3x3 convolution of a bottleneck does it (torchvision's form), or the
// first 1x1 one (the paper's) where the configuration says so.
//
// Sizes of images are part of the graph, which Hugging Face's configurations do not say: the key
// image_size does. One key is ours alone: a small stem is the paper's for small images, a single
// 3x3 convolution in place of a 7x7 one with stride 2 and a pooling.

struct ResNet {
  std::int64_t channels;
  std::int64_t embedding;
  std::vector<std::int64_t> widths, depths, image;
  bool has_bottlenecks, halves_first_stage, halves_early, has_small_stem;
  std::string activation;

  explicit ResNet(const AttributeReader& config)
      : channels(config.integer("num_channels")),
        embedding(config.integer("embedding_size")),
        widths(config.integers("hidden_sizes")),
        depths(config.integers("depths")),
        image(config.integers("image_size")),
        has_bottlenecks(is_one_of(config, "layer_type", "bottleneck", "basic")),
        halves_first_stage(config.flag("downsample_in_first_stage")),
        halves_early(config.flag("downsample_in_bottleneck")),
        has_small_stem(is_one_of(config, "lathe_stem", "small", "large")),
        activation(config.text("hidden_act")) {
    if (widths.empty() || widths.size() != depths.size())
      fail("hidden_sizes has {} stages and depths {}: expected as many, at least 1", widths.size(),
           depths.size());
    if (image.size() != 2) fail("image_size: expected rows and columns");
    check_size("num_channels", channels);
    check_size("embedding_size", embedding);
    for (const std::int64_t size : image) check_size("image_size", size);
    for (const std::int64_t depth : depths) {
      check_size("depths", depth);
      check_depth("depths", depth);
    }
    for (const std::int64_t width : widths) {
      check_size("hidden_sizes", width);
      if (has_bottlenecks && width % kReduction != 0)
        fail("hidden_sizes holds {}: expected multiples of {} for bottlenecks", width, kReduction);
    }
  }

  static constexpr std::int64_t kReduction = 4;

 private:
  static bool is_one_of(const AttributeReader& config, const char* key, const char* yes,
                        const char* no) {
    const std::string& value = config.text(key);
    if (value != yes && value != no) throw unknown_name(key, value, {no, yes});
    return value == yes;
  }
};

class Builder {
 public:
  Builder(Graph& graph, const ResNet& resnet) : graph_(graph), resnet_(resnet) {}

  Value stem(Value x) {
    const std::string embedder = "resnet.embedder.embedder";
    if (resnet_.has_small_stem)
      return layer(embedder, x, resnet_.embedding, 3, 1, resnet_.activation);
    x = layer(embedder, x, resnet_.embedding, 7, 2, resnet_.activation);
    return plain().add("resnet.embedder.pooler", "max_pool2d", {x},
                       {{"kernel", std::vector<std::int64_t>(2, 3)},
                        {"strides", std::vector<std::int64_t>(2, 2)},
                        {"pads", std::vector<std::int64_t>(4, 1)}});
  }

  Value stages(Value x) {
    for (std::size_t stage = 0; stage < resnet_.widths.size(); ++stage)
      for (std::int64_t block = 0; block < resnet_.depths[stage]; ++block) {
        const bool halves = block == 0 && (stage > 0 || resnet_.halves_first_stage);
        x = residual(fmt::format("resnet.encoder.stages.{}.layers.{}", stage, block), x,
                     resnet_.widths[stage], halves ? 2 : 1);
      }
    return x;
  }

  Value head(Value x, std::int64_t num_labels) {
    const Type type = graph_.type(x);
    x = plain().add("resnet.pooler", "avg_pool2d", {x},
                    {{"kernel", std::vector{type.axis(2).constant(), type.axis(3).constant()}}});
    x = {graph_.add({.name = "classifier.0",
                     .op = "reshape",
                     .inputs = {x},
                     .types = {{type.dtype, {type.axis(0), type.axis(1)}}}}),
         0};
    return plain().linear("classifier.1", x, num_labels);
  }

 private:
  ModuleBuilder plain() { return ModuleBuilder(graph_, std::nullopt); }

  // Hugging Face's blocks have ReLUs inside, whatever the configuration says for the rest.
  Value residual(const std::string& name, Value x, std::int64_t width, std::int64_t stride) {
    Value y = x;
    if (resnet_.has_bottlenecks) {
      const std::int64_t inner = width / ResNet::kReduction;
      y = layer(name + ".layer.0", y, inner, 1, resnet_.halves_early ? stride : 1, "relu");
      y = layer(name + ".layer.1", y, inner, 3, resnet_.halves_early ? 1 : stride, "relu");
      y = layer(name + ".layer.2", y, width, 1, 1, "");
    } else {
      y = layer(name + ".layer.0", y, width, 3, stride, "relu");
      y = layer(name + ".layer.1", y, width, 3, 1, "");
    }
    const bool is_same = stride == 1 && graph_.type(x).axis(1) == Size(width);
    const Value beside = is_same ? x : layer(name + ".shortcut", x, width, 1, stride, "");
    return activation(name, resnet_.activation, plain().add(name + ".add", "add", {y, beside}));
  }

  // A convolution, a batch norm and an activation, if one is named.
  Value layer(const std::string& name, Value x, std::int64_t width, std::int64_t kernel,
              std::int64_t stride, const std::string& function) {
    const std::int64_t inputs = graph_.type(x).axis(1).constant();
    // He et al. 2015 by the outputs: gradients keep their size through a stack of ReLUs.
    const double deviation = std::sqrt(2.0 / static_cast<double>(width * kernel * kernel));
    ModuleBuilder builder(graph_, deviation);
    const Value weight =
        builder.state(name + ".convolution.weight", {width, inputs, kernel, kernel}, "normal");
    const Value convolved = builder.add(name + ".convolution", "conv2d", {x, weight},
                                        {{"strides", std::vector<std::int64_t>(2, stride)},
                                         {"pads", std::vector<std::int64_t>(4, kernel / 2)}});
    const Value y = builder.batch_norm(name + ".normalization", convolved, kEps);
    return function.empty() ? y : activation(name, function, y);
  }

  Value activation(const std::string& name, const std::string& function, Value x) {
    return plain().activation(name + ".activation", "hidden_act", function, x);
  }

  static constexpr double kEps = 1e-5;  // PyTorch's; no configuration says another

  Graph& graph_;
  const ResNet& resnet_;
};

Graph build_resnet(const AttributeReader& config, const BuildOptions& options) {
  const ResNet resnet(config);
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  const Value pixels =
      ModuleBuilder(graph, std::nullopt)
          .input(
              "pixel_values",
              {DType::F32, {Size::symbol("B"), resnet.channels, resnet.image[0], resnet.image[1]}});
  Builder builder(graph, resnet);
  const Value encoded = builder.stages(builder.stem(pixels));
  if (options.task == "classify")
    graph.set_output("logits", builder.head(encoded, options.num_labels));
  else
    graph.set_output("last_hidden_state", encoded);
  return graph;
}

Attributes basic(std::vector<std::int64_t> depths) {
  return {{"hidden_sizes", std::vector<std::int64_t>{64, 128, 256, 512}},
          {"depths", std::move(depths)},
          {"layer_type", std::string("basic")}};
}

Attributes bottleneck(std::vector<std::int64_t> depths) {
  return {{"depths", std::move(depths)}};
}

const std::map<std::string, Attributes>& presets() {
  static const std::map<std::string, Attributes> kPresets{
      {"resnet18", basic({2, 2, 2, 2})},
      {"resnet34", basic({3, 4, 6, 3})},
      {"resnet50", bottleneck({3, 4, 6, 3})},
      {"resnet101", bottleneck({3, 4, 23, 3})},
      {"resnet152", bottleneck({3, 8, 36, 3})},
      {"resnet20",
       {{"num_channels", std::int64_t{1}},
        {"embedding_size", std::int64_t{16}},
        {"hidden_sizes", std::vector<std::int64_t>{16, 32, 64}},
        {"depths", std::vector<std::int64_t>{3, 3, 3}},
        {"layer_type", std::string("basic")},
        {"image_size", std::vector<std::int64_t>{28, 28}},
        {"lathe_stem", std::string("small")}}}};
  return kPresets;
}

// "18,3x64x64": one of the presets for other images.
Attributes parse_arguments(std::string_view arguments) {
  const std::size_t comma = std::min(arguments.find(','), arguments.size());
  const auto preset = presets().find("resnet" + std::string(arguments.substr(0, comma)));
  std::vector<std::int64_t> image;
  for (std::size_t begin = comma + 1; begin <= arguments.size();) {
    const std::size_t end = std::min(arguments.find('x', begin), arguments.size());
    std::int64_t size = 0;
    const char* const last = arguments.data() + end;
    const auto [stop, error] = std::from_chars(arguments.data() + begin, last, size);
    if (error != std::errc{} || stop != last || size < 1) break;
    image.push_back(size);
    begin = end + 1;
  }
  if (preset == presets().end() || image.size() != 3)
    fail(
        "expected resnet:DEPTH,CHANNELSxROWSxCOLUMNS, with a depth of 18, 20, 34, 50, 101 or 152, "
        "such as resnet:18,3x64x64");
  Attributes config = preset->second;
  config["num_channels"] = image[0];
  config["image_size"] = std::vector{image[1], image[2]};
  return config;
}

const Register registration{ModelFamily{
    .name = "resnet",
    .summary = "residual convolutional network, such as resnet18 or resnet:20,3x32x32",
    .reads = Reads::Image,
    .tasks = {{.name = "classify",
               .architecture = "ResNetForImageClassification",
               .inputs = {"pixel_values"},
               .optional_inputs = {"labels"},
               .label_layer = "classifier.1"},
              {.name = "encode", .architecture = "ResNetModel", .inputs = {"pixel_values"}}},
    .config = {{"num_channels", std::int64_t{3}, "of an image: 1 is grey"},
               {"image_size", std::vector<std::int64_t>{224, 224}, "rows and columns of an image"},
               {"embedding_size", std::int64_t{64}, "channels of the first convolution"},
               {"hidden_sizes", std::vector<std::int64_t>{256, 512, 1024, 2048},
                "channels of each stage"},
               {"depths", std::vector<std::int64_t>{3, 4, 6, 3}, "residual parts of each stage"},
               {"layer_type", std::string("bottleneck"),
                "residual parts of three convolutions, or of two: basic"},
               {"hidden_act", std::string("relu"), "behind convolutions and sums"},
               {"downsample_in_first_stage", false, "halve images in the first stage too"},
               {"downsample_in_bottleneck", false,
                "halve images in the first convolution of a bottleneck, not its second"},
               {"lathe_stem", std::string("large"),
                "7x7 with stride 2 and a pooling, or 3x3 alone: small"}},
    .presets = presets(),
    .keys_without_default = {"lathe_stem"},
    .naming = {.base_prefix = "resnet.", .meaningless = {".num_batches_tracked"}},
    .head_prefixes = {"classifier."},
    .build = build_resnet,
    .parse_arguments = parse_arguments,
}};

const std::string kPart = "resnet.encoder.stages.#.layers.#.";
const Register torchvision{OtherNames{
    .name = "resnet",
    .library = "torchvision",
    .patterns = {{"conv1.", "resnet.embedder.embedder.convolution."},
                 {"bn1.", "resnet.embedder.embedder.normalization."},
                 {"layer+.#.conv+.", kPart + "layer.#.convolution."},
                 {"layer+.#.bn+.", kPart + "layer.#.normalization."},
                 {"layer+.#.downsample.0.", kPart + "shortcut.convolution."},
                 {"layer+.#.downsample.1.", kPart + "shortcut.normalization."},
                 {"fc.", "classifier.1."}},
}};

}  // namespace
}  // namespace lathe::models::resnet
