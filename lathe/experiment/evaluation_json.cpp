#include "lathe/experiment/evaluation_json.h"

#include <cmath>

#include "lathe/train/classification_report.h"

namespace lathe::experiment {
namespace {

using nlohmann::ordered_json;

ordered_json f1_by_label(const std::vector<train::ClassScore>& scores,
                         const std::vector<std::string>& labels) {
  ordered_json result = ordered_json::object();
  for (std::size_t i = 0; i < scores.size(); ++i) result[labels[i]] = scores[i].f1;
  return result;
}

ordered_json number_or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

}  // namespace

ordered_json to_json(const train::Evaluation& result, const std::vector<std::string>& labels) {
  const std::vector<train::ClassScore> scores = train::class_scores(result.confusion);
  ordered_json line;
  line["accuracy"] = result.accuracy;
  line["accuracy_low"] = result.accuracy_low;
  line["accuracy_high"] = result.accuracy_high;
  line["f1"] = train::macro_f1(scores);
  line["labels"] = labels;
  line["f1_by_label"] = f1_by_label(scores, labels);
  line["confusion"] = result.confusion;
  return line;
}

ordered_json to_json(const ModelEvaluation& result, const io::Model& model) {
  ordered_json line;
  if (result.classes) {
    line = to_json(*result.classes, model.label_names);
    line["loss"] = result.classes->loss;
    line["examples"] = result.classes->examples;
  }
  if (result.numbers) {
    line["mean_squared_error"] = result.numbers->loss;
    line["pearson"] = number_or_null(result.numbers->pearson);
    line["spearman"] = number_or_null(result.numbers->spearman);
    line["loss"] = result.numbers->loss;
    line["examples"] = result.numbers->examples;
  }
  if (result.sets) {
    line["micro_f1"] = result.sets->micro_f1;
    line["macro_f1"] = result.sets->macro_f1;
    line["exact"] = result.sets->exact;
    line["labels"] = model.label_names;
    line["f1_by_label"] = f1_by_label(result.sets->labels, model.label_names);
    line["loss"] = result.sets->loss;
    line["examples"] = result.sets->examples;
  }
  if (result.words) {
    const train::WordScore& words = *result.words;
    line["task"] = model.task;
    line["accuracy"] = words.accuracy;
    line["accuracy_low"] = words.accuracy_low;
    line["accuracy_high"] = words.accuracy_high;
    if (words.has_entities) {
      line["precision"] = words.entities.precision();
      line["recall"] = words.entities.recall();
      line["f1"] = words.entities.f1();
      line["entities"] = words.entities.expected;
      line["f1_by_type"] = ordered_json::object();
      for (const auto& [type, count] : words.types) line["f1_by_type"][type] = count.f1();
    }
    line["labels"] = model.label_names;
    line["loss"] = words.loss;
    line["words"] = words.words;
    line["words_cut"] = words.cut;
    line["examples"] = words.examples;
  }
  if (result.loss) {
    line["task"] = model.task;
    line["loss"] = result.loss->loss;
    line["perplexity"] = std::exp(result.loss->loss);
    line["predictions"] = result.loss->predictions;
    line["examples"] = result.loss->examples;
  }
  return line;
}

}  // namespace lathe::experiment
