#include <charconv>
#include <cmath>

#include "lathe/models/cnn_layer.h"
#include "lathe/models/family.h"
#include "lathe/models/module_builder.h"

namespace lathe::models::cnn {
namespace {

// Layers in their order, named by their place in it; the first linear reads the image as one row.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Value add(const std::string& name, const CnnLayer& layer, Value x, bool is_last) {
    switch (layer.kind) {
      case CnnLayer::Kind::Convolution:
        return relu(name, convolution(name, layer, image(x)));
      case CnnLayer::Kind::Residual:
        return residual(name, layer, image(x));
      case CnnLayer::Kind::MaxPool:
        return pool(name, "max_pool2d", layer, image(x));
      case CnnLayer::Kind::AveragePool:
        return pool(name, "avg_pool2d", layer, image(x));
      case CnnLayer::Kind::Linear:
        break;
    }
    const Value row = flatten(name, x);
    const std::int64_t inputs = graph_.type(row).axis(-1).constant();
    const Value y = with_inputs(inputs).linear(name, row, layer.size);
    return is_last ? y : relu(name, y);
  }

 private:
  // He et al. 2015: with this deviation ReLUs neither raise nor lower the size of what passes.
  ModuleBuilder with_inputs(std::int64_t count) {
    return ModuleBuilder(graph_, std::sqrt(2.0 / static_cast<double>(count)));
  }
  Value image(Value x) const {
    if (graph_.type(x).rank() != 4) fail("an image is read behind a linear layer");
    return x;
  }
  Value relu(const std::string& name, Value x) {
    return ModuleBuilder(graph_, 0).add(name + ".activation", "relu", {x});
  }

  Value convolution(const std::string& name, const CnnLayer& layer, Value x) {
    const std::int64_t channels = graph_.type(x).axis(1).constant(), k = layer.kernel;
    ModuleBuilder builder = with_inputs(channels * k * k);
    const Value weight = builder.state(name + ".weight", {layer.size, channels, k, k}, "normal");
    const Value bias = builder.state(name + ".bias", {layer.size}, "zeros");
    return builder.add(name, "conv2d", {x, weight, bias},
                       {{"strides", std::vector<std::int64_t>(2, layer.stride)},
                        {"pads", std::vector<std::int64_t>(4, layer.padding)}});
  }

  // A convolution of one pixel brings what goes beside to another size.
  Value residual(const std::string& name, const CnnLayer& layer, Value x) {
    const Value inner = relu(name + ".conv1", convolution(name + ".conv1", layer, x));
    CnnLayer second = layer;
    second.stride = 1;
    const Value y = convolution(name + ".conv2", second, inner);
    const bool is_same = layer.stride == 1 && graph_.type(x).axis(1) == Size(layer.size);
    const CnnLayer pixel{.size = layer.size, .stride = layer.stride};
    const Value beside = is_same ? x : convolution(name + ".shortcut", pixel, x);
    return relu(name, ModuleBuilder(graph_, 0).add(name, "add", {y, beside}));
  }

  Value pool(const std::string& name, const char* op, const CnnLayer& layer, Value x) {
    const Type& type = graph_.type(x);
    const std::vector<std::int64_t> kernel =
        layer.size == 0 ? std::vector{type.axis(2).constant(), type.axis(3).constant()}
                        : std::vector{layer.size, layer.size};
    return ModuleBuilder(graph_, 0).add(name, op, {x}, {{"kernel", kernel}});
  }

  Value flatten(const std::string& name, Value x) {
    const Type& type = graph_.type(x);
    if (type.rank() == 2) return x;
    const std::int64_t pixels = type.axis(2).constant() * type.axis(3).constant();
    return {graph_.add({.name = name + ".flatten",
                        .op = "reshape",
                        .inputs = {x},
                        .types = {{type.dtype, {type.axis(0), type.axis(1).constant() * pixels}}}}),
            0};
  }

  Graph& graph_;
};

Graph build_cnn(const AttributeReader& config, const BuildOptions&) {
  const std::vector<std::int64_t>& image = config.integers("image");
  if (image.size() != 3) fail("image: expected channels, rows and columns");
  for (const std::int64_t size : image)
    if (size < 1) fail("image: size {}, expected 1 or more", size);
  const std::vector<CnnLayer> layers = parse_cnn_layers(config.text("layers"));
  if (layers.back().kind != CnnLayer::Kind::Linear)
    fail("layers: expected the last one to be linear");
  Graph graph;
  Value x = ModuleBuilder(graph, 0).input(
      "x", {DType::F32, {Size::symbol("B"), image[0], image[1], image[2]}});
  Builder builder(graph);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = fmt::format("layers.{}", i);
    x = with_place(name, [&] { return builder.add(name, layers[i], x, i + 1 == layers.size()); });
  }
  graph.set_output("logits", x);
  return graph;
}

// "1x28x28,c6k5,m2,10": the image, then layers.
Attributes parse_arguments(std::string_view arguments) {
  const std::string_view sizes = arguments.substr(0, arguments.find(','));
  std::vector<std::int64_t> image;
  for (std::size_t begin = 0; begin <= sizes.size();) {
    const std::size_t end = std::min(sizes.find('x', begin), sizes.size());
    std::int64_t size = 0;
    const auto [stop, error] = std::from_chars(sizes.data() + begin, sizes.data() + end, size);
    if (error != std::errc{} || stop != sizes.data() + end || size < 1) break;
    image.push_back(size);
    begin = end + 1;
  }
  if (image.size() != 3 || sizes.size() == arguments.size())
    fail("expected cnn:CHANNELSxROWSxCOLUMNS,LAYER,..., such as cnn:1x28x28,c6k5,m2,10");
  const std::string_view layers = arguments.substr(sizes.size() + 1);
  parse_cnn_layers(layers);
  return {{"image", image}, {"layers", std::string(layers)}};
}

const Register registration{ModelFamily{
    .name = "cnn",
    .summary = "convolutional network, such as cnn:1x28x28,c6k5,m2,c16k5,m2,120,84,10",
    .reads = Reads::Image,
    .tasks = {{.name = "classify",
               .architecture = "CNN",
               .inputs = {"x"},
               .optional_inputs = {"labels"}}},
    .config = {{"image", std::vector<std::int64_t>{}, "channels, rows and columns", true},
               {"layers", std::string(), "c16k3s1p1, r16k3s1, m2, a2, a or 120, with commas",
                true}},
    .presets = {},
    .build = build_cnn,
    .parse_arguments = parse_arguments,
}};

}  // namespace
}  // namespace lathe::models::cnn
