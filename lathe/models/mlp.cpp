#include <algorithm>
#include <charconv>

#include "lathe/models/family.h"
#include "lathe/models/fit_config.h"
#include "lathe/models/module_builder.h"
#include "lathe/ops/unary_maps.h"

namespace lathe::models::mlp {
namespace {

// Linear layers with an activation after each but the last; a single layer keeps its own, so that
// `mlp:4,8` is Linear(4,8) and ReLU.
Graph build_mlp(const AttributeReader& config, const BuildOptions&) {
  const std::vector<std::int64_t>& sizes = config.integers("sizes");
  if (sizes.size() < 2) fail("sizes: expected at least an input and an output size");
  for (const std::int64_t size : sizes)
    if (size < 1) fail("size {}: expected 1 or more", size);
  const std::string& activation = config.text("activation");
  std::vector<std::string> known;
  for (const ops::UnaryMap& map : ops::unary_maps()) known.push_back(map.name);
  known.emplace_back("rrelu");
  if (std::find(known.begin(), known.end(), activation) == known.end())
    throw unknown_name("activation", activation, known);
  Graph graph;
  const double range = config.real("initializer_range");
  ModuleBuilder builder(graph, range > 0 ? std::optional(range) : std::nullopt);
  const Size rows = Size::symbol("B");
  Value x = builder.input("x", {DType::F32, {rows, sizes[0]}});
  const std::size_t layers = sizes.size() - 1;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string name = fmt::format("layers.{}", layer);
    x = builder.linear(name, x, sizes[layer + 1]);
    if (layer + 1 == layers && layers > 1) continue;
    Attributes attributes;
    if (activation == "rrelu") attributes["site"] = builder.next_site();
    x = builder.add(name + ".activation", activation, {x}, std::move(attributes));
  }
  graph.set_output("logits", x);
  return graph;
}

// "4,8,activation=tanh": sizes, then other keys of the configuration.
Attributes parse_sizes(std::string_view arguments) {
  std::vector<std::int64_t> sizes;
  Attributes result;
  while (!arguments.empty()) {
    const std::string_view one = arguments.substr(0, arguments.find(','));
    if (one.starts_with("activation=")) {
      result["activation"] = std::string(one.substr(one.find('=') + 1));
      arguments.remove_prefix(std::min(arguments.size(), one.size() + 1));
      continue;
    }
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), size);
    if (error != std::errc{} || end != one.data() + one.size() || size < 1)
      fail("\"{}\" is no layer size: expected mlp:inputs,hidden,...,outputs", one);
    sizes.push_back(size);
    arguments.remove_prefix(std::min(arguments.size(), one.size() + 1));
  }
  if (sizes.size() < 2) fail("expected mlp:inputs,...,outputs with at least two sizes");
  result["sizes"] = sizes;
  return result;
}

Attributes read_sizes(const Graph& graph, const Attributes& config) {
  std::vector<std::int64_t> sizes = std::get<std::vector<std::int64_t>>(config.at("sizes"));
  for (std::size_t layer = 0; layer + 1 < sizes.size(); ++layer)
    sizes[layer + 1] =
        num_rows(graph, fmt::format("layers.{}.weight", layer)).value_or(sizes[layer + 1]);
  return {{"sizes", sizes}};
}

const Register registration{ModelFamily{
    .name = "mlp",
    .summary = "multi-layer perceptron, such as mlp:784,256,10 or mlp:4,8,activation=tanh",
    .reads = Reads::Features,
    .tasks = {{.name = "classify",
               .architecture = "MLP",
               .inputs = {"x"},
               .optional_inputs = {"labels"}}},
    .config = {{"sizes", std::vector<std::int64_t>{}, "inputs, hidden sizes, outputs", true},
               {"activation", std::string("relu"), "behind every layer but the last"},
               {"initializer_range", 0.0,
                "standard deviation of fresh weights; 0: uniform up to 1 / sqrt(inputs)"}},
    .presets = {},
    .build = build_mlp,
    .read_sizes = read_sizes,
    .parse_arguments = parse_sizes,
}};

}  // namespace
}  // namespace lathe::models::mlp
