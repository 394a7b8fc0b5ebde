#include "lathe/train/run_model.h"

#include <algorithm>
#include <map>

#include "lathe/core/pass.h"
#include "lathe/models/imported.h"
#include "lathe/models/loss.h"
#include "lathe/models/set_inputs.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/elements.h"

namespace lathe::train {
namespace {

// The model's graph with the inputs that there are tensors for.
Graph graph_for(const io::Model& model, const Feed& tensors) {
  std::vector<std::string> names;
  for (const NodeId id : model.graph.nodes_of("input")) {
    const std::string& name = model.graph.name(id);
    if (tensors.contains(name))
      names.push_back(name);
    else if (name != models::kLabelsInput)
      fail("input \"{}\" is missing: expected {}", name, to_text(model.graph.types(id)[0]));
  }
  for (const auto& [name, tensor] : tensors)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  Graph graph = model.graph;
  if (names != models::input_names(graph))
    models::set_inputs(graph, *model.family, models::find_task(*model.family, model.task), names,
                       model.labels);
  return graph;
}

// The tensor as the input's type wants it.
Tensor fit(const std::string& name, const Type& type, const Tensor& tensor) {
  if (tensor.dtype() == type.dtype) return tensor;
  if (is_floating(tensor.dtype()) == is_floating(type.dtype)) {
    Tensor converted = tensor.converted(type.dtype);
    if (identical(converted.converted(tensor.dtype()), tensor)) return converted;
    fail("input \"{}\" holds {} numbers that {} cannot: expected {}", name,
         lathe::name(tensor.dtype()), lathe::name(type.dtype), to_text(type));
  }
  fail("input \"{}\" is {}: expected {}", name, lathe::name(tensor.dtype()), to_text(type));
}

// Every symbol of the inputs' types has one value.
void check_shapes(const Graph& graph, const Feed& feed) {
  struct Bound {
    std::int64_t size;
    std::string input;
  };
  std::map<std::string, Bound> bound;
  for (const NodeId id : graph.nodes_of("input")) {
    const std::string& name = graph.name(id);
    const Type& type = graph.types(id)[0];
    const std::vector<std::int64_t>& dims = feed.at(name).dims();
    bool fits = dims.size() == type.rank();
    for (std::size_t axis = 0; fits && axis < dims.size(); ++axis) {
      const Size& size = type.shape[axis];
      if (size.is_constant()) {
        fits = size.constant() == dims[axis];
        continue;
      }
      const auto [known, is_new] = bound.emplace(size.text(), Bound{dims[axis], name});
      if (known->second.size != dims[axis])
        fail("input \"{}\" is {}: expected {}, with {} = {} as in \"{}\"", name, to_text(dims),
             to_text(type), size.text(), known->second.size, known->second.input);
    }
    if (!fits) fail("input \"{}\" is {}: expected {}", name, to_text(dims), to_text(type));
  }
}

// A mask of keys holds 0 and 1, and in a graph of another program each row of it a 1: what files
// compute of other numbers, or where no key is left (NaN, 0, or weights by scores, as they hide
// keys), is not what attention, which their formula was recognised as, makes of them.
void check_masks(const io::Model& model, const Graph& graph, const Feed& feed) {
  const bool is_imported = models::is_imported(*model.family);
  for (const NodeId id : graph.nodes_of("attention")) {
    const std::vector<Value>& operands = graph.inputs(id);
    if (operands.size() <= ops::kMask || operands[ops::kMask].is_none()) continue;
    const NodeId source = operands[ops::kMask].node;
    if (!graph.is(source, "input")) continue;
    const std::string& name = graph.name(source);
    const std::vector<std::int64_t> mask = ops::read_integers(feed.at(name));
    const auto other =
        std::ranges::find_if(mask, [](std::int64_t kept) { return kept != 0 && kept != 1; });
    if (other != mask.end())
      fail("input \"{}\" holds {} at index {}: expected 0 or 1, for it masks keys", name, *other,
           other - mask.begin());
    const std::int64_t length = feed.at(name).dims().back();
    for (std::int64_t row = 0; is_imported && length > 0 && row < std::ssize(mask) / length; ++row)
      if (std::find(mask.begin() + row * length, mask.begin() + (row + 1) * length, 1) ==
          mask.begin() + (row + 1) * length)
        fail("input \"{}\" hides every key of row {}: expected a 1 in each row", name, row);
  }
}

}  // namespace

Feed run_model(const io::Model& model, const Feed& tensors,
               const engine::ExecutionOptions& execution) {
  Graph graph = graph_for(model, tensors);
  Feed feed;
  for (const NodeId id : graph.nodes_of("input"))
    feed[graph.name(id)] = fit(graph.name(id), graph.types(id)[0], tensors.at(graph.name(id)));
  check_shapes(graph, feed);
  check_masks(model, graph, feed);
  run_pass("remove-dropout", graph);
  return engine::make_executor(graph, model.state, execution)->run(feed);
}

}  // namespace lathe::train
