#pragma once

#include <nlohmann/json.hpp>

#include "lathe/experiment/evaluate.h"

namespace lathe::experiment {

/// What an evaluation found, as `eval` and `train` print it and `results.json` keeps it: accuracy
/// with its interval, F1 of each class and confusion; squared error and correlations; F1 of sets of
/// labels; or the loss of a language model.
nlohmann::ordered_json to_json(const ModelEvaluation& result, const io::Model& model);

/// The part of classes alone.
nlohmann::ordered_json to_json(const train::Evaluation& result,
                               const std::vector<std::string>& labels);

}  // namespace lathe::experiment
