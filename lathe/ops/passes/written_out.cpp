#include "lathe/ops/passes/written_out.h"

#include <cmath>

namespace lathe::ops {

std::optional<double> number_of(const Graph& graph, Value value) {
  if (value.is_none()) return std::nullopt;
  if (graph.is(value.node, "broadcast_to") || graph.is(value.node, "reshape"))
    return number_of(graph, graph.input(value.node, 0));
  if (!graph.is(value.node, "constant")) return std::nullopt;
  const std::vector<double> values = graph.attribute(value.node).reals("values");
  if (values.size() != 1) return std::nullopt;
  return values[0];
}

// A float32 number is within 2^-24 of what it stands for; writers round twice.
bool is_about(double a, double b) {
  return std::fabs(a - b) <= 0x1p-22 * std::fabs(b);
}

Factors factors_of(const Graph& graph, Value value) {
  Factors result;
  if (const std::optional<double> number = number_of(graph, value)) {
    result.number = *number;
    return result;
  }
  const auto join = [&](const Factors& other) {
    result.number *= other.number;
    result.values.insert(result.values.end(), other.values.begin(), other.values.end());
  };
  // What stretches a factor stays a factor of its own.
  const auto keeps_shape = [&](std::size_t operand) {
    const Value part = graph.input(value.node, operand);
    return number_of(graph, part) || graph.type(part).shape == graph.type(value).shape;
  };
  if (graph.is(value.node, "mul") && keeps_shape(0) && keeps_shape(1)) {
    join(factors_of(graph, graph.input(value.node, 0)));
    join(factors_of(graph, graph.input(value.node, 1)));
    return result;
  }
  if (graph.is(value.node, "div") && keeps_shape(0)) {
    const std::optional<double> divisor = number_of(graph, graph.input(value.node, 1));
    if (divisor && *divisor != 0) {
      join(factors_of(graph, graph.input(value.node, 0)));
      result.number /= *divisor;
      return result;
    }
  }
  if (graph.is(value.node, "neg")) {
    join(factors_of(graph, graph.input(value.node, 0)));
    result.number = -result.number;
    return result;
  }
  result.values = {value};
  return result;
}

std::optional<Shifted> shifted_of(const Graph& graph, Value value) {
  if (!graph.is(value.node, "add")) return std::nullopt;
  for (const std::size_t i : {0, 1})
    if (const std::optional<double> number = number_of(graph, graph.input(value.node, i)))
      return Shifted{graph.input(value.node, 1 - i), *number};
  return std::nullopt;
}

std::optional<Value> operand_of(const Graph& graph, Value value, std::string_view op) {
  if (value.is_none() || !graph.is(value.node, op)) return std::nullopt;
  return graph.input(value.node, 0);
}

}  // namespace lathe::ops
