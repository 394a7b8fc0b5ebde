#include "lathe/experiment/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace lathe::experiment {
namespace {

const Figure kAccuracy{.name = "accuracy", .key = "accuracy"};
const Figure kSquaredError{
    .name = "error", .key = "mean_squared_error", .is_share = false, .detail = "mean squared"};
const Figure kPearson{.name = "Pearson", .key = "pearson", .is_share = false};
const Figure kSpearman{.name = "Spearman", .key = "spearman", .is_share = false};
const Figure kMicroF1{.name = "F1", .key = "micro_f1", .detail = "of all labels together"};
const Figure kMacroF1{.name = "mean F1", .key = "macro_f1", .detail = "over labels"};
const Figure kEntityF1{.name = "F1", .key = "f1", .detail = "of entities"};
const Figure kLoss{.name = "loss", .key = "loss", .is_share = false};
const Figure kPerplexity{.name = "perplexity", .key = "perplexity", .is_share = false};

std::string value_text(const MeasuredFigure& figure) {
  const std::string value = fmt::format("{:.4f}", figure.value);
  if (!figure.interval) return value;
  return fmt::format("{} ({:.4f} to {:.4f})", value, figure.interval->low, figure.interval->high);
}

// Calls `use(before, after)` for every figure that both have: a correlation may be missing.
template <typename Use>
void for_each_pair(const ModelEvaluation& before, const ModelEvaluation& after, const Use& use) {
  const std::vector<MeasuredFigure> later = figures_of(after);
  for (const MeasuredFigure& first : figures_of(before)) {
    const auto second = std::ranges::find(later, first.key, &MeasuredFigure::key);
    if (second != later.end()) use(first, *second);
  }
}

struct Work {
  std::int64_t tokens = 0;
  double seconds = 0;
};
Work work_of(const ModelEvaluation& evaluation) {
  const auto work = [](const auto& measured) -> Work {
    return {measured.tokens, measured.forward_seconds};
  };
  if (evaluation.classes) return work(*evaluation.classes);
  if (evaluation.numbers) return work(*evaluation.numbers);
  if (evaluation.sets) return work(*evaluation.sets);
  if (evaluation.words) return work(*evaluation.words);
  return {};
}

}  // namespace

Figure first_figure(LabelKind labels) {
  switch (labels) {
    case LabelKind::Number:
      return kSquaredError;
    case LabelKind::Set:
      return kMicroF1;
    case LabelKind::Class:
      break;
  }
  return kAccuracy;
}

std::string capitalized(const std::string& name) {
  std::string result = name;
  if (!result.empty() && result[0] >= 'a' && result[0] <= 'z')
    result[0] = static_cast<char>(result[0] - 'a' + 'A');
  return result;
}

std::vector<MeasuredFigure> figures_of(const ModelEvaluation& evaluation) {
  std::vector<MeasuredFigure> figures;
  const auto add = [&](const Figure& figure, double value) {
    figures.push_back({figure, value, {}});
  };
  if (evaluation.classes) {
    add(kAccuracy, evaluation.classes->accuracy);
    figures.back().interval = {evaluation.classes->accuracy_low, evaluation.classes->accuracy_high};
  }
  if (evaluation.numbers) {
    add(kSquaredError, evaluation.numbers->loss);
    if (evaluation.numbers->pearson) add(kPearson, *evaluation.numbers->pearson);
    if (evaluation.numbers->spearman) add(kSpearman, *evaluation.numbers->spearman);
  }
  if (evaluation.sets) {
    add(kMicroF1, evaluation.sets->micro_f1);
    add(kMacroF1, evaluation.sets->macro_f1);
  }
  if (evaluation.words) {
    add(kAccuracy, evaluation.words->accuracy);
    figures.back().interval = {evaluation.words->accuracy_low, evaluation.words->accuracy_high};
    if (evaluation.words->has_entities) add(kEntityF1, evaluation.words->entities.f1());
  }
  if (evaluation.loss) {
    add(kLoss, evaluation.loss->loss);
    add(kPerplexity, std::exp(evaluation.loss->loss));
  }
  return figures;
}

std::string difference_text(const Figure& figure, double difference) {
  return figure.is_share ? fmt::format("{:+.2f}", 100 * difference)
                         : fmt::format("{:+.4f}", difference);
}

std::vector<std::pair<std::string, std::string>> compare_figures(const ModelEvaluation& before,
                                                                 const ModelEvaluation& after) {
  std::vector<std::pair<std::string, std::string>> lines;
  for_each_pair(before, after, [&](const MeasuredFigure& first, const MeasuredFigure& second) {
    lines.emplace_back(
        first.name,
        fmt::format("{} before, {} after: {}{}{}", value_text(first), value_text(second),
                    difference_text(first, second.value - first.value),
                    first.is_share ? " points" : "",
                    first.detail.empty() ? "" : "  (" + first.detail + ")"));
  });
  return lines;
}

nlohmann::ordered_json figures_json(const ModelEvaluation& before, const ModelEvaluation& after) {
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  for_each_pair(before, after, [&](const MeasuredFigure& first, const MeasuredFigure& second) {
    line[first.key + "_before"] = first.value;
    line[first.key] = second.value;
  });
  return line;
}

double forward_seconds(const ModelEvaluation& evaluation) {
  return work_of(evaluation).seconds;
}

std::optional<double> tokens_per_second(const ModelEvaluation& evaluation) {
  const Work work = work_of(evaluation);
  if (work.tokens == 0 || work.seconds <= 0) return std::nullopt;
  return static_cast<double>(work.tokens) / work.seconds;
}

}  // namespace lathe::experiment
