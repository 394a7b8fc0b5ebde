#include "lathe/cli/evaluation_text.h"

#include <fmt/ranges.h>

#include "lathe/experiment/evaluation_json.h"
#include "lathe/report/table.h"
#include "lathe/train/classification_report.h"

namespace lathe::cli {
namespace {

report::Table score_table(const std::vector<train::ClassScore>& scores,
                          const std::vector<std::string>& labels) {
  report::Table table({"label", "examples", "predicted", "precision", "recall", "F1"});
  for (std::size_t i = 0; i < scores.size(); ++i)
    table.row({labels[i], fmt::format("{}", scores[i].examples),
               fmt::format("{}", scores[i].predicted), fmt::format("{:.4f}", scores[i].precision),
               fmt::format("{:.4f}", scores[i].recall), fmt::format("{:.4f}", scores[i].f1)});
  return table;
}

}  // namespace

void add_classes(nlohmann::ordered_json& line, const train::Evaluation& result,
                 const std::vector<std::string>& labels) {
  line.update(experiment::to_json(result, labels));
}

void print_numbers(const train::NumberScore& result, const std::string& where) {
  const auto shown = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4f}", *value) : std::string("- (nothing varies)");
  };
  fmt::print("error      {:.4f}  (mean squared{})\n", result.loss, where);
  fmt::print("Pearson    {}\nSpearman   {}\n", shown(result.pearson), shown(result.spearman));
}

void print_sets(const train::LabelSetScore& result, const std::string& where) {
  fmt::print("F1         {:.4f}  (of all labels together{})\n", result.micro_f1, where);
  fmt::print("mean F1    {:.4f}  (over labels)\n", result.macro_f1);
  fmt::print("all right  {:.4f}  (of examples)\n", result.exact);
}

void print_labels(const train::LabelSetScore& result, const std::vector<std::string>& labels) {
  fmt::print("\n{}", score_table(result.labels, labels).to_text());
}

void print_words(const train::WordScore& result, const std::string& where) {
  fmt::print("accuracy   {:.4f}  (of words; 95 % interval {:.4f} to {:.4f}{})\n", result.accuracy,
             result.accuracy_low, result.accuracy_high, where);
  if (result.has_entities)
    fmt::print("F1         {:.4f}  (of {} entities; precision {:.4f}, recall {:.4f})\n",
               result.entities.f1(), result.entities.expected, result.entities.precision(),
               result.entities.recall());
  fmt::print("words      {}{}\n", result.words,
             result.cut > 0 ? fmt::format(", {} more were not read", result.cut) : "");
}

void print_types(const train::WordScore& result) {
  if (!result.has_entities) return;
  report::Table table({"type", "entities", "predicted", "precision", "recall", "F1"});
  for (const auto& [type, count] : result.types)
    table.row({type, fmt::format("{}", count.expected), fmt::format("{}", count.predicted),
               fmt::format("{:.4f}", count.precision()), fmt::format("{:.4f}", count.recall()),
               fmt::format("{:.4f}", count.f1())});
  fmt::print("\n{}", table.to_text());
}

void print_classes(const train::Evaluation& result, const std::vector<std::string>& labels) {
  const std::vector<train::ClassScore> scores = train::class_scores(result.confusion);
  fmt::print("\n{}\nmean F1    {:.4f}\n", score_table(scores, labels).to_text(),
             train::macro_f1(scores));
  fmt::print("true label by row, predicted by column\n");
  for (std::size_t row = 0; row < result.confusion.size(); ++row)
    fmt::print("  {:<12} {:>8}\n", labels[row], fmt::join(result.confusion[row], " "));
}

}  // namespace lathe::cli
