#include "lathe/cli/evaluation_text.h"

#include <fmt/ranges.h>

#include "lathe/report/table.h"
#include "lathe/train/classification_report.h"

namespace lathe::cli {

void add_classes(nlohmann::ordered_json& line, const train::Evaluation& result,
                 const std::vector<std::string>& labels) {
  line["accuracy"] = result.accuracy;
  line["accuracy_low"] = result.accuracy_low;
  line["accuracy_high"] = result.accuracy_high;
  line["f1"] = train::macro_f1(train::class_scores(result.confusion));
  line["labels"] = labels;
  line["confusion"] = result.confusion;
}

void print_classes(const train::Evaluation& result, const std::vector<std::string>& labels) {
  report::Table table({"label", "examples", "predicted", "precision", "recall", "F1"});
  const std::vector<train::ClassScore> scores = train::class_scores(result.confusion);
  for (std::size_t i = 0; i < scores.size(); ++i)
    table.row({labels[i], fmt::format("{}", scores[i].examples),
               fmt::format("{}", scores[i].predicted), fmt::format("{:.4f}", scores[i].precision),
               fmt::format("{:.4f}", scores[i].recall), fmt::format("{:.4f}", scores[i].f1)});
  fmt::print("\n{}\nmean F1    {:.4f}\n", table.to_text(), train::macro_f1(scores));
  fmt::print("true label by row, predicted by column\n");
  for (std::size_t row = 0; row < result.confusion.size(); ++row)
    fmt::print("  {:<12} {:>8}\n", labels[row], fmt::join(result.confusion[row], " "));
}

}  // namespace lathe::cli
