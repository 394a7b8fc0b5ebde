#include "lathe/train/classification_report.h"

namespace lathe::train {

std::vector<ClassScore> class_scores(const std::vector<std::vector<std::int64_t>>& confusion) {
  std::vector<ClassScore> scores(confusion.size());
  for (std::size_t truth = 0; truth < confusion.size(); ++truth)
    for (std::size_t guess = 0; guess < confusion.size(); ++guess) {
      scores[truth].examples += confusion[truth][guess];
      scores[guess].predicted += confusion[truth][guess];
    }
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  for (std::size_t label = 0; label < confusion.size(); ++label) {
    ClassScore& score = scores[label];
    const std::int64_t right = confusion[label][label];
    score.precision = share(right, score.predicted);
    score.recall = share(right, score.examples);
    score.f1 = share(2 * right, score.predicted + score.examples);
  }
  return scores;
}

double macro_f1(const std::vector<ClassScore>& scores) {
  double sum = 0;
  for (const ClassScore& score : scores) sum += score.f1;
  return scores.empty() ? 0 : sum / static_cast<double>(scores.size());
}

}  // namespace lathe::train
