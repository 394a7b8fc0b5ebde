#pragma once

#include <optional>
#include <vector>

#include "lathe/core/graph.h"

/// How passes read arithmetic that other programs write out: numbers, and products of several.
namespace lathe::ops {

/// The number that a value is everywhere, where it is a constant of one number.
std::optional<double> number_of(const Graph& graph, Value value);
/// Whether two numbers are the same up to the rounding of float32.
bool is_about(double a, double b);

/// A product taken apart: number * factors.
struct Factors {
  double number = 1.0;
  std::vector<Value> values;
};
/// The factors of a value through `mul`, `div` by a number and `neg`; just itself where it is no
/// product.
Factors factors_of(const Graph& graph, Value value);

/// A sum of a value and a number.
struct Shifted {
  Value value;
  double number = 0.0;
};
std::optional<Shifted> shifted_of(const Graph& graph, Value value);

/// The value in its node's only operand place: what `value` was made of, where its op is `op`.
std::optional<Value> operand_of(const Graph& graph, Value value, std::string_view op);

}  // namespace lathe::ops
