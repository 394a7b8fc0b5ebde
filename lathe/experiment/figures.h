#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/core/label_kind.h"
#include "lathe/experiment/evaluate.h"

namespace lathe::experiment {

/// A figure that models are judged by.
struct Figure {
  std::string name;         ///< "accuracy", "error", "F1"
  std::string key;          ///< what JSON calls it: "accuracy", "mean_squared_error", "micro_f1"
  bool is_share = true;     ///< from 0 to 1, so that differences are points of a hundredth
  std::string detail = {};  ///< what the name leaves open: "mean squared"
};

/// A figure with its value, and its 95 % interval where one is known.
struct MeasuredFigure : Figure {
  double value = 0;
  std::optional<train::Interval> interval = {};
};

/// The figure that says most of a model with such labels.
Figure first_figure(LabelKind labels);

/// The name where a sentence begins with it: "Accuracy".
std::string capitalized(const std::string& name);

/// What an evaluation says of a model in few numbers, the first figure first.
std::vector<MeasuredFigure> figures_of(const ModelEvaluation& evaluation);

/// "+1.25" points for a share, "+0.0125" for others.
std::string difference_text(const Figure& figure, double difference);

/// A line of each figure that both evaluations have: its name, and "0.90 before, 0.85 after: -5.00
/// points".
std::vector<std::pair<std::string, std::string>> compare_figures(const ModelEvaluation& before,
                                                                 const ModelEvaluation& after);

/// The same for programs: `accuracy_before` and `accuracy`.
nlohmann::ordered_json figures_json(const ModelEvaluation& before, const ModelEvaluation& after);

/// How long the model alone worked; 0 for a language model.
double forward_seconds(const ModelEvaluation& evaluation);
/// Tokens that the model alone worked through in a second; nothing for one that reads none.
std::optional<double> tokens_per_second(const ModelEvaluation& evaluation);

}  // namespace lathe::experiment
