#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lathe/compress/pruning/selection.h"
#include "lathe/core/registry.h"

namespace lathe::compress {

/// What a method looks at besides the weights.
enum class PruningEvidence {
  None,
  Inputs,    ///< what the layers are fed with, measured on data
  Lookups,   ///< how often rows of tables are looked up in data
  Training,  ///< what gradients said while the model trained
};

/// What is known of the weights that are scored.
struct ScoringInput {
  std::span<const PruningUnit> units;
  const State& values;  ///< of every state that a unit has a part of, after masks and with LoRA
  std::uint64_t seed = 0;
  /// Evidence Inputs: by state, the mean of x x^T over the rows x that its layers read, k x k.
  const std::map<std::string, std::vector<double>>* products = nullptr;
  /// Evidence Training: by state, how far training moved each weight away from zero.
  const State* movement = nullptr;
  /// Evidence Lookups: by state, how often each row was looked up.
  const std::map<std::string, std::vector<std::int64_t>>* lookups = nullptr;
};

/// A weight with holes.
struct PrunedWeight {
  Tensor mask, values;
};

/// A way to say which weights matter least: one file each.
struct PruningMethod {
  std::string name;
  std::string summary;
  PruningEvidence evidence = PruningEvidence::None;
  /// Where none is asked for.
  PruningScope scope = PruningScope::Local;
  /// Which granularities it knows, and what they are in words; empty: all.
  std::function<bool(const Granularity&)> granularities = {};
  std::string prunes = {};
  /// The scores of every element that a unit has a part of (see select_masks), by state. Empty for
  /// methods that cannot score before they prune.
  std::function<State(const ScoringInput&)> score = {};
  /// Chooses and moves what stays in one go: prunes a unit of one weight to a sparsity. What `held`
  /// has a 0 for is out; it may be null.
  std::function<PrunedWeight(const ScoringInput&, const PruningUnit&, double sparsity,
                             const Tensor* held)>
      prune = {};
};
using PruningMethodRegistry = Registry<PruningMethod>;

/// The method of that name; fails with the nearest one.
const PruningMethod& find_pruning_method(std::string_view name);

}  // namespace lathe::compress
