#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::experiment {

/// One stage of a pipeline, as it was asked for.
struct StageSpec {
  std::string kind;
  nlohmann::json settings = nlohmann::json::object();
  std::string place = {};  ///< where it was written, for messages
  bool operator==(const StageSpec& other) const {
    return kind == other.kind && settings == other.settings;
  }
};

/// Reads the stages of a pipeline, in order:
///
///     [[stage]]
///     kind = "prune"
///     sparsity = 0.5
///
///     [[stage]]
///     kind = "fine-tune"
///     epochs = 1
///     lr = 2e-4
///
/// `kind` names a stage, everything else is a setting of that kind, and each is checked. What else
/// the file holds is for others. `source` names it in messages.
std::vector<StageSpec> parse_pipeline(std::string_view text, const std::string& source);

}  // namespace lathe::experiment
