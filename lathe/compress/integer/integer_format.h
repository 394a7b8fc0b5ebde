#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/number_format.h"
#include "lathe/numerics/integer/requant.h"

/// Number formats as integers times a scale: docs/integer.md, "Integer tensors".
namespace lathe::compress {

/// The integers of an activation and what one is worth.
struct IntegerFormat {
  numerics::IntegerRange range;
  double scale = 1;
};

/// A parameter as integers: `values[i] * scales[row]` is its element i, exactly or to the last bit
/// of a float where the scale is no power of two.
struct IntegerParameter {
  std::vector<std::int64_t> values;
  std::vector<double> scales;  ///< one, or one for each row
};

/// Why there is none, for a message: "mxint:8 makes its scales while it runs".
struct NoIntegers {
  std::string reason;
};

/// What a quantizer of an activation gives, as integers.
std::variant<IntegerFormat, NoIntegers> activation_integers(const Graph& graph, const State& state,
                                                            NodeId quantizer);

/// The integers that a quantizer of that format rounds floats to.
std::vector<std::int64_t> integer_codes(const Tensor& floats, const IntegerFormat& format);

/// Floats that a quantizer gave, as integers. They are `rows` rows, row by row; `one_scale` asks
/// for a scale that all rows share.
std::variant<IntegerParameter, NoIntegers> parameter_integers(const Graph& graph,
                                                              const State& state, NodeId quantizer,
                                                              const std::vector<float>& values,
                                                              std::int64_t rows, bool one_scale);

}  // namespace lathe::compress
