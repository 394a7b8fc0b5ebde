#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {
namespace {

// Solves `size` = `actual` when exactly one symbol is unknown and appears as c*symbol + constant,
// which is all that input shapes use (`B`, `S+1`).
void solve(const Size& size, const std::vector<std::string>& symbols, std::int64_t actual,
           SymbolValues& values) {
  const std::string* unknown = nullptr;
  for (const std::string& symbol : symbols) {
    if (values.contains(symbol)) continue;
    if (unknown != nullptr) return;
    unknown = &symbol;
  }
  if (unknown == nullptr) return;
  SymbolValues at_zero = values, at_one = values;
  at_zero[*unknown] = 0;
  at_one[*unknown] = 1;
  const std::int64_t constant = size.evaluate(at_zero);
  const std::int64_t slope = size.evaluate(at_one) - constant;
  if (slope == 0 || (actual - constant) % slope != 0) return;
  const std::int64_t solution = (actual - constant) / slope;
  if (solution >= 0) values[*unknown] = solution;
}

void check_fits(const Graph& graph, NodeId state, const Tensor& tensor) {
  const Type& type = graph.types(state)[0];
  if (tensor.dtype() != type.dtype || tensor.dims() != type.dims({}))
    fail("tensor \"{}\" is {}{}, but {} is expected", graph.name(state),
         lathe::name(tensor.dtype()), to_text(tensor.dims()), to_text(type));
}

}  // namespace

GraphInputs::GraphInputs(const Graph& graph) {
  for (const NodeId id : graph.nodes_of("input")) {
    Input& input = inputs_.emplace_back(id, graph.name(id), graph.types(id)[0]);
    for (const Size& size : input.type.shape) input.symbols.push_back(size.symbols());
  }
}

SymbolValues GraphInputs::bind_symbols(const Feed& feed) const {
  SymbolValues values;
  std::vector<const Tensor*> tensors;
  tensors.reserve(inputs_.size());
  for (const auto& [node, name, type, symbols] : inputs_) {
    const auto given = feed.find(name);
    if (given == feed.end()) fail("input \"{}\" is missing: expected {}", name, to_text(type));
    const Tensor& tensor = given->second;
    if (tensor.dtype() != type.dtype || tensor.rank() != type.rank())
      fail("input \"{}\" is {}{}, but {} is expected", name, lathe::name(tensor.dtype()),
           to_text(tensor.dims()), to_text(type));
    tensors.push_back(&tensor);
  }
  // B may only be known from an input after the one that has B*L, so until nothing new is found.
  for (std::size_t known = 0, before = 1; known != before;) {
    before = known;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      for (std::size_t axis = 0; axis < inputs_[i].type.rank(); ++axis)
        solve(inputs_[i].type.shape[axis], inputs_[i].symbols[axis], tensors[i]->dim(axis), values);
    known = values.size();
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    const std::vector<std::int64_t>& given = tensors[i]->dims();
    std::vector<std::int64_t> dims;
    try {
      dims = input.type.dims(values);
    } catch (const UserError& error) {
      throw error.at(fmt::format("input \"{}\" of shape {}", input.name, to_text(given)));
    }
    if (dims != given)
      fail("input \"{}\" has shape {}, but {} is {} here", input.name, to_text(given),
           to_text(input.type.shape), to_text(dims));
  }
  return values;
}

SymbolValues bind_symbols(const Graph& graph, const Feed& feed) {
  return GraphInputs(graph).bind_symbols(feed);
}

void check_state(const Graph& graph, const State& state) {
  for (const NodeId id : graph.nodes_of("state")) {
    const auto found = state.find(graph.name(id));
    if (found == state.end())
      fail("tensor \"{}\" is missing: expected {}", graph.name(id), to_text(graph.types(id)[0]));
    check_fits(graph, id, found->second);
  }
}

void check_new_state(const Graph& graph, const State& values) {
  for (const auto& [name, tensor] : values) {
    const std::optional<NodeId> id = graph.find(name);
    if (!id || !graph.is(*id, "state")) fail("tensor \"{}\" is no state of the graph", name);
    check_fits(graph, *id, tensor);
  }
}

}  // namespace lathe::engine
