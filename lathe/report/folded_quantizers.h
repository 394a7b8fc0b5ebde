#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::report {

/// A parameter as whoever reads it lists it, whatever is made of it first: decoded, rounded,
/// masked.
struct FoldedParameter {
  std::string name;    ///< of the parameter itself
  std::string format;  ///< what it is rounded to or stored as; empty: a float
  bool is_masked = false;
};
/// The parameter that a value is, or nothing where it is something else or a plain state.
std::optional<FoldedParameter> folded_parameter(const Graph& graph, const Value& value);

/// What a value was before quantizers rounded it, and to which formats they do, the last first.
struct UnroundedValue {
  Value value;
  std::vector<std::string> formats = {};
};
UnroundedValue before_rounding(const Graph& graph, const Value& value);

/// Whether a picture shows the node in its readers or on its edges, and has no box for it.
bool is_folded_quantizer(const Graph& graph, NodeId id);

}  // namespace lathe::report
