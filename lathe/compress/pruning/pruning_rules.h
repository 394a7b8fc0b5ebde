#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/compress/layer_match.h"
#include "lathe/compress/pruning/granularity.h"
#include "lathe/compress/pruning/selection.h"

/// What of a model is pruned: rules that name layers and say how much of their weights goes, and by
/// what. The first rule that matches a layer is the one that counts.
namespace lathe::compress {

/// How weights are pruned. What is absent is left to whoever comes next: the options, then the
/// method.
struct PruningSettings {
  std::optional<double> sparsity = {};  ///< 0: the weights stay as they are
  std::optional<std::string> method = {};
  std::optional<Granularity> granularity = {};
  std::optional<PruningScope> scope = {};
  /// The share of each row of a layer's input that counts as 0, the smallest magnitudes.
  std::optional<double> activations = {};
  bool operator==(const PruningSettings&) const = default;
};

/// The settings with what is absent taken from others.
PruningSettings filled(PruningSettings settings, const PruningSettings& others);

/// Fails unless every value is one that can be, alone and with the others.
void check_settings(const PruningSettings& settings);

struct PruningRule {
  MatchBy by = MatchBy::Any;
  std::string match = {};
  PruningSettings settings = {};
  std::string place = {};  ///< where it was written, for messages
};

/// Reads rules from TOML:
///
///     [[rule]]
///     by = "regex"                # type, name or regex
///     match = "layer\\.0\\."
///     sparsity = 0.8
///     granularity = "2:4"
///     [[rule]]
///     by = "name"
///     match = "classifier"
///     sparsity = 0                # leave it as it is
///     [default]
///     method = "wanda"
///
/// MASE's keys are understood as well: `[weight]` and `[activation]` with `sparsity`, `method`
/// (`l1-norm`, `random`), `scope` and `granularity` (`elementwise`). `source` names the file in
/// messages.
std::vector<PruningRule> parse_pruning_rules(std::string_view text, const std::string& source);

}  // namespace lathe::compress
