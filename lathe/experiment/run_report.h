#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace lathe::experiment {

/// Draws what `metrics.jsonl` of a run says as `curves.svg`, two charts side by side: the loss of
/// every step, with the loss of each validation, and what each validation measured. Without a
/// validation there is the first alone.
void write_curves(const std::filesystem::path& run);

/// Writes how a run's model did on a split as `results.json`.
void write_results(const std::filesystem::path& run, const std::string& data,
                   const std::string& split, const nlohmann::ordered_json& evaluation);

}  // namespace lathe::experiment
