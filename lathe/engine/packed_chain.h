#pragma once

#include <cstdint>
#include <string>

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::engine {

/// Square linear layers one behind the other, each with weights of its own, of made-up numbers:
/// what times products with weights that no cache holds.
struct PackedChainShape {
  std::string weight = {};  ///< its format; empty: float32
  std::string x = {};       ///< what activations are rounded to; empty: floats
  std::int64_t size = 0, layers = 0;
};

struct PackedChain {
  Graph graph;  ///< x0[T, size] to y[T, size]
  State state;
  double layer_bytes = 0;  ///< of the weights of a layer, as they are stored
};

PackedChain make_packed_chain(const PackedChainShape& shape);
/// Numbers for x0: in [-1, 1], the same for everybody.
Tensor packed_chain_input(std::int64_t rows, std::int64_t size);

}  // namespace lathe::engine
