#include <algorithm>
#include <cmath>
#include <numbers>

#include "lathe/core/pass.h"
#include "lathe/ops/passes/written_out.h"

// gelu, by erf or by tanh, silu and quick_gelu are one op each here, with a kernel and a gradient;
// other programs write them as products. A product that is x times a function of x is looked at as
// the list of its factors, so that it does not matter in which order they were multiplied.
namespace lathe::ops {
namespace {

// Whether `value` is number * x.
bool is_multiple(const Graph& graph, Value value, Value x, double number) {
  const Factors factors = factors_of(graph, value);
  return factors.values == std::vector<Value>{x} && is_about(factors.number, number);
}

// Whether `value` is x^3, as a power or as a product.
bool is_cube(const Graph& graph, Value value, Value x) {
  if (graph.is(value.node, "pow")) {
    const std::optional<double> exponent = number_of(graph, graph.input(value.node, 1));
    return exponent == 3.0 && graph.input(value.node, 0) == x;
  }
  return false;
}

// Whether the factors are number * x^3.
bool is_scaled_cube(const Graph& graph, Value value, Value x, double number) {
  const Factors factors = factors_of(graph, value);
  if (!is_about(factors.number, number)) return false;
  if (factors.values.size() == 1) return is_cube(graph, factors.values[0], x);
  return factors.values == std::vector<Value>{x, x, x};
}

// sqrt(2/pi) * (x + 0.044715 * x^3).
bool is_tanh_argument(const Graph& graph, Value value, Value x) {
  const Factors factors = factors_of(graph, value);
  if (factors.values.size() != 1 || !is_about(factors.number, std::sqrt(2.0 / std::numbers::pi)))
    return false;
  const Value sum = factors.values[0];
  if (!graph.is(sum.node, "add")) return false;
  for (const std::size_t i : {0, 1})
    if (graph.input(sum.node, i) == x &&
        is_scaled_cube(graph, graph.input(sum.node, 1 - i), x, 0.044715))
      return true;
  return false;
}

struct Activation {
  const char* op;
  Attributes attributes;
};

// What number * x * function is.
std::optional<Activation> find_activation(const Graph& graph, double number, Value x,
                                          Value function) {
  if (number == 1.0) {
    if (const auto inner = operand_of(graph, function, "sigmoid")) {
      if (*inner == x) return Activation{"silu", {}};
      if (is_multiple(graph, *inner, x, 1.702)) return Activation{"quick_gelu", {}};
    }
  }
  const std::optional<Shifted> shifted = shifted_of(graph, function);
  if (!shifted || number != 0.5 || shifted->number != 1.0) return std::nullopt;
  if (const auto inner = operand_of(graph, shifted->value, "erf"))
    if (is_multiple(graph, *inner, x, 1.0 / std::numbers::sqrt2)) return Activation{"gelu", {}};
  if (const auto inner = operand_of(graph, shifted->value, "tanh"))
    if (is_tanh_argument(graph, *inner, x))
      return Activation{"gelu", {{"approximate", std::string("tanh")}}};
  return std::nullopt;
}

int recognize_activations(Graph& graph) {
  int changed = 0;
  // From the end, so that a whole product is seen before its parts.
  std::vector<NodeId> order = graph.topological_order();
  std::ranges::reverse(order);
  for (const NodeId id : order) {
    if (!graph.has(id) || !(graph.is(id, "mul") || graph.is(id, "div"))) continue;
    const Factors factors = factors_of(graph, {id, 0});
    if (factors.values.size() != 2) continue;
    for (const std::size_t i : {0, 1}) {
      const Value x = factors.values[i];
      const std::optional<Activation> found =
          find_activation(graph, factors.number, x, factors.values[1 - i]);
      if (!found) continue;
      const NodeId node = graph.insert_before(id, {.name = graph.name(id) + "/" + found->op,
                                                   .op = found->op,
                                                   .inputs = {x},
                                                   .attributes = found->attributes});
      graph.replace_all_uses({id, 0}, {node, 0});
      ++changed;
      break;
    }
  }
  if (changed > 0) run_pass("remove-dead-nodes", graph);
  return changed;
}

const Register recognize_activations_pass{Pass{
    .name = "recognize-activations",
    .summary = "make one op of gelu, silu and quick_gelu that are written out",
    .run = recognize_activations,
}};

}  // namespace
}  // namespace lathe::ops
