#include "lathe/compress/average_bits.h"

#include <map>

#include "lathe/compress/layers.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/pass.h"

namespace lathe::compress {
namespace {

// Rows of data are so many that a scale of all of them is of no weight.
constexpr std::int64_t kManyRows = std::int64_t{1} << 20;
constexpr double kFloatBits = 32;

double bits_of(const std::string& format, std::int64_t rows, std::int64_t columns) {
  const auto parsed = parse_format(format);
  return parsed == nullptr ? kFloatBits : parsed->bits_per_element(rows, columns);
}

// Formats of packed weights by the layer that reads them.
void add_packed(const Graph& graph, std::map<std::string, std::string>& formats) {
  const Parameters parameters(graph);
  for (const NodeId id : graph.nodes_of("decode"))
    for (const Use& use : working_uses(graph, parameters, id))
      if (use.kind == Use::Kind::Operand)
        formats[graph.name(use.user)] = graph.attribute(id).text("format");
}

PassResult report_average_bits(Graph& graph, PassContext&) {
  const AverageBits bits = average_bits(graph);
  return {
      0, fmt::format("weights {:.4g} bits, {:.1f} % rounded; data {:.4g} bits, {:.1f} % rounded",
                     bits.weights, 100 * bits.rounded_weights, bits.data, 100 * bits.rounded_data)};
}

const Register average_bits_pass{Pass{
    .name = "average-bits",
    .summary = "count the stored bits of layers' weights and of what they read, scales included",
    .run = report_average_bits,
}};

}  // namespace

double LayerBits::weight_bits() const {
  return bits_of(weights, rows, columns);
}

double LayerBits::data_bits() const {
  return bits_of(data, kManyRows, width);
}

std::vector<LayerBits> layer_bits(const Graph& graph) {
  std::map<std::string, std::string> weights, data;
  for (const Quantizer& quantizer : find_quantizers(graph))
    for (const std::string& layer : quantizer.layers) {
      if (quantizer.role == TensorRole::Weights) weights[layer] = quantizer.format;
      if (quantizer.role == TensorRole::Inputs) data[layer] = quantizer.format;
    }
  add_packed(graph, weights);
  std::vector<LayerBits> layers;
  for (const Layer& layer : find_layers(graph)) {
    const Type& weight = graph.type(graph.input(layer.node, layer.weight));
    const Type& input = graph.type(graph.input(layer.node, layer.input));
    const std::string& name = graph.name(layer.node);
    LayerBits bits{.layer = name,
                   .rows = weight.axis(0).constant(),
                   .columns = weight.num_elements().constant() / weight.axis(0).constant(),
                   .width = input.axis(-1).constant()};
    if (const auto found = weights.find(name); found != weights.end()) bits.weights = found->second;
    if (const auto found = data.find(name); found != data.end()) bits.data = found->second;
    layers.push_back(std::move(bits));
  }
  return layers;
}

AverageBits average_bits(std::span<const LayerBits> layers) {
  AverageBits sums;
  double weights = 0, data = 0;
  for (const LayerBits& layer : layers) {
    const auto count = static_cast<double>(layer.num_weights());
    const auto width = static_cast<double>(layer.width);
    weights += count;
    data += width;
    sums.weights += count * layer.weight_bits();
    sums.data += width * layer.data_bits();
    if (layer.weights != "float") sums.rounded_weights += count;
    if (layer.data != "float") sums.rounded_data += width;
  }
  if (layers.empty()) return {};
  return {.weights = sums.weights / weights,
          .data = sums.data / data,
          .rounded_weights = sums.rounded_weights / weights,
          .rounded_data = sums.rounded_data / data};
}

}  // namespace lathe::compress
