#pragma once

#include <cstdint>
#include <vector>

#include "lathe/compress/shrinking/structures.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// What stays of a structure, in rising order: features of neurons, or heads of queries and of the
/// keys and contents that they share.
struct StructureSelection {
  std::vector<std::int64_t> features = {};         ///< that readers read
  std::vector<std::int64_t> shared_features = {};  ///< that makers of keys and contents make
  std::int64_t heads = 0, shared_heads = 0;
};
StructureSelection keep_neurons(std::vector<std::int64_t> neurons);
StructureSelection keep_heads(const Structure& structure, const std::vector<std::int64_t>& heads,
                              const std::vector<std::int64_t>& shared_heads);

/// Makes a structure smaller: cuts the weights and biases of its layers and tells the nodes between
/// them. Weights that stay have the numbers that they had, rounded or not.
///
/// Fails with the reason, leaving graph and state half changed, where something else reads a
/// parameter or rounding would change what stays.
void cut_structure(Graph& graph, State& state, const Structure& structure,
                   const StructureSelection& selection);

}  // namespace lathe::compress
