#include "lathe/search/fisher_information.h"

#include <algorithm>
#include <array>

#include "lathe/compress/layers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/differentiate.h"
#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/pass.h"
#include "lathe/train/find_loss.h"
#include "lathe/train/make_source.h"

namespace lathe::search {
namespace {

std::string weight_of(const Graph& graph, const compress::Layer& layer) {
  const NodeId state = compress::weight_state(graph, graph.input(layer.node, layer.weight));
  return graph.name(state);
}

std::string weight_of(const Graph& graph, const std::string& name) {
  for (const compress::Layer& layer : compress::find_layers(graph))
    if (graph.name(layer.node) == name) return weight_of(graph, layer);
  throw unknown_name("layer", name, {});
}

}  // namespace

FisherInformation fisher_information(const io::Model& model, train::ExampleSource& examples,
                                     std::int64_t most_examples,
                                     const engine::ExecutionOptions& execution,
                                     const experiment::Callbacks& callbacks) {
  Graph graph = model.graph;
  train::pack_inputs(graph, model);
  run_pass("remove-dropout", graph);
  run_pass("select-rows-early", graph);
  std::vector<std::string> layers;
  std::vector<Value> weights;
  for (const compress::Layer& layer : compress::find_layers(graph)) {
    layers.push_back(graph.name(layer.node));
    weights.push_back({graph.at(weight_of(graph, layer)), 0});
  }
  const std::vector<Value> gradients = differentiate(graph, train::find_loss(graph).sum, weights);
  for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (!gradients[i].is_none()) graph.set_output(layers[i], gradients[i]);
  run_pass("remove-dead-nodes", graph);

  const auto executor = engine::make_executor(graph, model.state, execution);
  FisherInformation information;
  const std::int64_t count = std::min(most_examples, examples.size());
  check(count > 0, "examples to measure on");
  for (std::int64_t example = 0; example < count; ++example) {
    if (callbacks.stops()) throw Interrupted();
    const std::array one{example};
    for (const auto& [layer, gradient] : executor->run(examples.training_batch(one, 0).feed)) {
      std::vector<double>& sums = information[layer];
      const auto values = gradient.data<float>();
      sums.resize(values.size());
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] += double{values[i]} * values[i] / static_cast<double>(count);
    }
  }
  return information;
}

double fisher_damage(const FisherInformation& information, const std::string& layer,
                     const io::Model& model, const io::Model& rounded) {
  const auto found = information.find(layer);
  if (found == information.end()) return 0;  // the loss does not depend on it
  const std::string weight = weight_of(model.graph, layer);
  const auto before = model.state.at(weight).data<float>();
  const auto after = rounded.state.at(weight).data<float>();
  check(before.size() == after.size() && before.size() == found->second.size(),
        "weights of the same shape");
  double sum = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double change = double{after[i]} - before[i];
    sum += found->second[i] * change * change / 2;
  }
  return sum;
}

}  // namespace lathe::search
