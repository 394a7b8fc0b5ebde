#pragma once

#include <toml++/toml.h>

#include "lathe/compress/pruning/pruning_rules.h"

namespace lathe::compress {

/// Whether a file of rules is a configuration of MASE's pruning pass.
bool is_mase_pruning(const toml::table& root);

/// The rule for all layers that MASE's `[weight]` and `[activation]` mean. Counts are exact where
/// MASE's are those of a threshold, and activations are chosen row by row instead of batch by
/// batch. A key that would change nothing, and random activations, which are others in every run,
/// are refused.
PruningRule parse_mase_pruning(const toml::table& root, const std::string& source);

}  // namespace lathe::compress
