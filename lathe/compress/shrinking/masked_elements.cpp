#include "lathe/compress/shrinking/masked_elements.h"

#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

// What masks take out of a value, as far as masks and rounding decide it; empty: nothing.
std::vector<bool> covered(const Graph& graph, const State& state, Value value) {
  const NodeId id = value.node;
  if (graph.is(id, "state")) {
    if (state_role(graph, id) != StateRole::Mask) return {};
    const Tensor& mask = state.at(graph.name(id));
    std::vector<bool> zeros(static_cast<std::size_t>(mask.num_elements()));
    for (std::size_t i = 0; i < zeros.size(); ++i)
      zeros[i] = mask.at(static_cast<std::int64_t>(i)) == 0;
    return zeros;
  }
  if (graph.is(id, "quantize")) return covered(graph, state, graph.input(id, 0));
  const bool is_product = graph.is(id, "mul");
  if (!is_product && !graph.is(id, "add")) return {};
  std::vector<bool> result;
  for (std::size_t i = 0; i < 2; ++i) {
    const Value operand = graph.input(id, i);
    std::vector<bool> part;
    if (graph.type(operand).shape == graph.type(value).shape) part = covered(graph, state, operand);
    if (part.empty()) {
      if (!is_product) return {};  // a sum is out where both of its parts are
      continue;
    }
    if (result.empty()) {
      result = std::move(part);
      continue;
    }
    for (std::size_t k = 0; k < result.size(); ++k)
      result[k] = is_product ? result[k] || part[k] : result[k] && part[k];
  }
  return result;
}

}  // namespace

std::vector<bool> masked_elements(const Graph& graph, const State& state, Value parameter,
                                  const Tensor& value) {
  std::vector<bool> result = covered(graph, state, parameter);
  result.resize(static_cast<std::size_t>(value.num_elements()), false);
  // A format without a zero makes something of what was masked before it.
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = result[i] && value.at(static_cast<std::int64_t>(i)) == 0;
  return result;
}

}  // namespace lathe::compress
