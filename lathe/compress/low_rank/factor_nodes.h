#pragma once

#include "lathe/compress/low_rank/low_rank_targets.h"
#include "lathe/core/tensor.h"

/// How the factors of a weight stand in a graph, and how they become a weight again.
namespace lathe::compress {

/// Puts L [rows, rank] in the place of a weight and R [rank, columns] beside it, as the state
/// `<module>.low_rank.weight` of nodes `<reader>/low_rank`: layers in front of layers, linears
/// behind lookups. Returns the state's name.
std::string insert_factors(Graph& graph, State& state, const LowRankTarget& target,
                           const Tensor& left, const Tensor& right);

/// The nodes that were put beside the readers of a weight, in the readers' order.
struct FactorNodes {
  LowRankTarget target;  ///< that L is the weight of
  NodeId factor;         ///< the state of R
  std::vector<NodeId> nodes;
};
/// Every weight with factor nodes, known by their form (see multiply_factors).
std::vector<FactorNodes> find_factors(const Graph& graph);

/// Makes L R the weight again and takes R and its nodes away.
void remove_factors(Graph& graph, State& state, const FactorNodes& factors);

/// L [n, r] times R [r, m], each element summed in double and rounded once.
Tensor multiply_matrices(const Tensor& left, const Tensor& right);

}  // namespace lathe::compress
