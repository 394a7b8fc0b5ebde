#include "lathe/compress/input_products.h"

#include <algorithm>

#include "lathe/compress/data_run.h"
#include "lathe/compress/layers.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/pass.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

// The graph without rounding, whose outputs are what each layer reads, by the layer's name.
Graph watch_inputs(const io::Model& model) {
  Graph graph = measured_graph(model.graph);
  for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
  std::vector<NodeId> quantizers;
  for (const Quantizer& quantizer : find_quantizers(graph)) quantizers.push_back(quantizer.node);
  for (const Layer& layer : find_layers(graph))
    if (ops::result_axis(graph, layer.node) == -1)
      graph.set_output(graph.name(layer.node), graph.input(layer.node, layer.input));
  unround_attention(graph);
  bypass_quantizers(graph, quantizers);
  return graph;
}

void add_products(const Tensor& tensor, std::vector<double>& sum, double& count) {
  const auto k = static_cast<std::size_t>(tensor.dims().back());
  sum.resize(k * k, 0.0);
  const std::span<const float> x = tensor.data<float>();
  // A part of the rows says as much about second moments, in a part of the time.
  const std::size_t stride = std::max<std::size_t>(1, x.size() / k / 512);
  for (std::size_t row = 0; (row + 1) * k <= x.size(); row += stride) {
    const float* const v = x.data() + row * k;
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < k; ++j)
        sum[i * k + j] += static_cast<double>(v[i]) * static_cast<double>(v[j]);
    count += 1;
  }
}

}  // namespace

InputProducts measure_input_products(const io::Model& model, train::ExampleSource& examples,
                                     std::int64_t num_examples,
                                     const engine::ExecutionOptions& execution) {
  InputProducts products;
  std::map<std::string, double> counts;
  const Graph graph = watch_inputs(model);
  if (graph.outputs().empty()) return products;
  run_on_data(graph, model.state, examples, num_examples, execution, [&](const DataBatch& batch) {
    for (const auto& [layer, tensor] : batch.outputs)
      add_products(tensor, products[layer], counts[layer]);
  });
  for (auto& [layer, sum] : products)
    for (double& value : sum) value /= std::max(1.0, counts[layer]);
  return products;
}

}  // namespace lathe::compress
