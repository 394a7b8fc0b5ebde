#include "lathe/engine/idle_masks.h"

#include <bit>

#include "lathe/core/number_format.h"

namespace lathe::engine {
namespace {

const Tensor* state_value(const Graph& graph, const State& state, Value value) {
  if (value.is_none() || !graph.is(value.node, "state")) return nullptr;
  const auto found = state.find(graph.name(value.node));
  return found == state.end() ? nullptr : &found->second;
}

std::vector<float> decoded(const Graph& graph, NodeId decode, const State& state) {
  const std::shared_ptr<const NumberFormat> format =
      parse_format(graph.attribute(decode).text("format"));
  const auto operand = [&](std::size_t i) -> const Tensor* {
    return i < graph.inputs(decode).size() ? state_value(graph, state, graph.input(decode, i))
                                           : nullptr;
  };
  const auto bytes_of = [&](std::size_t i) {
    if (operand(i) == nullptr) return std::vector<std::uint8_t>();
    const std::span<const std::uint8_t> bytes = operand(i)->data<std::uint8_t>();
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  const auto floats_of = [&](std::size_t i) {
    return operand(i) == nullptr ? nullptr : operand(i)->data<float>().data();
  };
  const EncodedMatrix encoded{operand(0)->dim(0), graph.attribute(decode).integer("columns"),
                              bytes_of(0), bytes_of(1)};
  std::vector<float> numbers(static_cast<std::size_t>(encoded.rows * encoded.columns));
  format->decode(encoded, floats_of(2), floats_of(3), numbers.data());
  return numbers;
}

// Whether multiplying by the mask changes no bit of the numbers.
bool is_idle(const Tensor& mask, const std::vector<float>& numbers) {
  const std::span<const float> factors = mask.data<float>();
  if (factors.size() != numbers.size()) return false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool is_kept = factors[i] == 1.0f;
    const bool is_zero = std::bit_cast<std::uint32_t>(numbers[i]) == 0;
    if (!is_kept && !(is_zero && std::bit_cast<std::uint32_t>(factors[i]) == 0)) return false;
  }
  return true;
}

}  // namespace

std::set<std::string> remove_idle_masks(Graph& graph, const State& state) {
  std::set<std::string> seen;
  for (const NodeId id : graph.nodes_of("mul")) {
    for (const std::size_t side : {0, 1}) {
      const NodeId decode = graph.input(id, side).node;
      const Tensor* const mask = state_value(graph, state, graph.input(id, 1 - side));
      if (mask == nullptr || mask->dtype() != DType::F32 || !graph.is(decode, "decode") ||
          graph.types(decode)[0].rank() != 2 || graph.attribute(decode).integer("axis") > 0 ||
          graph.types(decode)[0] != graph.types(id)[0])
        continue;
      bool has_states = true;
      for (const Value& value : graph.inputs(decode))
        has_states = has_states && (value.is_none() || state_value(graph, state, value) != nullptr);
      if (!has_states || !is_idle(*mask, decoded(graph, decode, state))) continue;
      seen.insert(graph.name(graph.input(id, 1 - side).node));
      for (const Value& value : graph.inputs(decode))
        if (!value.is_none()) seen.insert(graph.name(value.node));
      graph.replace_all_uses({id, 0}, {decode, 0});
      break;
    }
  }
  return seen;
}

}  // namespace lathe::engine
