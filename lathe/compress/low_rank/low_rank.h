#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lathe/compress/input_products.h"
#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"
#include "lathe/io/model.h"

/// Weights and tables as products of two narrow matrices. A layer `y = x W^T + b` becomes two,
/// `(x R^T) L^T + b`, and a lookup becomes one in a narrow table with a layer behind it.
namespace lathe::compress {

/// How narrow. One of `rank`, `energy` and `share` says it; the others are 0.
struct LowRankOptions {
  std::vector<std::string> targets = {};  ///< patterns (RE2) in the names of layers and lookups
  std::int64_t rank = 0;
  double energy = 0;  ///< least share of the weight's energy to keep, above 0, up to 1
  double share = 0;   ///< most numbers that both factors may have, of the weight's; below 1
};

/// What data says about the errors that count; either may be empty.
struct LowRankEvidence {
  InputProducts products = {};  ///< by layer
  /// By table: how often each row is looked up. One is added to each count, lest rows that are new
  /// in other data be lost.
  std::map<std::string, std::vector<std::int64_t>> lookups = {};
};

/// A weight that can be factorised: a parameter that layers multiply with as it is, or that rows
/// are looked up in.
struct LowRankWeight {
  std::string state;
  std::vector<std::string> readers;    ///< names of the layers and lookups
  std::int64_t rows = 0, columns = 0;  ///< outputs and inputs of a layer
  std::vector<double> energies = {};   ///< that ranks 1, 2, ... add (see Factorization)

  /// Numbers of both factors at a rank.
  std::int64_t num_elements(std::int64_t rank) const { return rank * (rows + columns); }
  /// The share of energy that a rank leaves out.
  double loss(std::int64_t rank) const;
};
/// Every weight whose layers or lookups a target matches, with its energies: what a budget is
/// spent over. Fails when a target matches nothing.
std::vector<LowRankWeight> measure_low_rank(const Graph& graph, const State& state,
                                            const std::vector<std::string>& targets,
                                            const LowRankEvidence& evidence = {});

/// What became of a weight.
struct FactorizedWeight {
  std::string state;   ///< of L, which was the weight
  std::string factor;  ///< the state of R
  std::vector<std::string> readers;
  std::int64_t rows = 0, columns = 0, rank = 0;
  double energy = 0;  ///< share that is kept
  double error = 0;   ///< |W - L R| / |W|, unweighted
};
struct LowRankReport {
  std::vector<FactorizedWeight> weights = {};
  std::vector<std::string> notes =
      {};  ///< what was asked for and could not be done: a line for each
  std::int64_t parameters_before = 0, parameters_after = 0;
};

/// Factorises the weights of every layer and lookup that a target matches, for all who read them. L
/// keeps the weight's name and place; R is the state `<module>.low_rank.weight` of a new node
/// `<layer>/low_rank`. A weight that is masked, rounded, packed or has a LoRA path beside it, and
/// one that would not become smaller, stays as it is, and a note says why.
LowRankReport factorize_weights(Graph& graph, State& state, const LowRankOptions& options,
                                const LowRankEvidence& evidence = {});
/// The same for a model, whose fresh states stay fresh.
LowRankReport factorize_weights(io::Model& model, const LowRankOptions& options,
                                const LowRankEvidence& evidence = {});

/// Multiplies factors again, each element summed in double and rounded once, for programs that know
/// the family's graph alone; returns how many weights. Factors are known by their form: a layer
/// without a bias whose result one other layer alone reads, or one behind a lookup; none that the
/// family itself builds, and none that are masked, rounded or a LoRA path. What
/// `factorize_weights` made then has its graph of before.
int multiply_factors(io::Model& model);

}  // namespace lathe::compress
