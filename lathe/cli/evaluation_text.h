#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lathe/cli/settings.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/loss_evaluation.h"

/// How well a model did, as commands print it.
namespace lathe::cli {

/// Adds accuracy, its interval, F1, labels and confusion to a JSON object.
void add_classes(nlohmann::ordered_json& line, const train::Evaluation& result,
                 const std::vector<std::string>& labels);

/// Prints a table of the classes, and which were taken for which.
void print_classes(const train::Evaluation& result, const std::vector<std::string>& labels);

}  // namespace lathe::cli
