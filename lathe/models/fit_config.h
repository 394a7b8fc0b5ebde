#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lathe/models/family.h"

namespace lathe::models {

/// The configuration of a graph of the family that a pass gave other sizes, as far as there are
/// words for it: a key is changed only where the family's own graph then has the sizes that this
/// one has in all that the key decides. What cannot be said stays as it was, and the graph is the
/// truth.
Attributes fit_config(const ModelFamily& family, const Attributes& config, const std::string& task,
                      const Graph& graph);

/// The rows of a state, for families that read sizes; nullopt where the graph has no such state.
std::optional<std::int64_t> num_rows(const Graph& graph, std::string_view state);

}  // namespace lathe::models
