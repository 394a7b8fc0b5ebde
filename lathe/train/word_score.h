#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lathe/train/answers.h"
#include "lathe/train/entities.h"
#include "lathe/train/evaluation.h"

namespace lathe::train {

/// How well a model labels words.
struct WordScore {
  double accuracy = 0;                         ///< of words
  double accuracy_low = 0, accuracy_high = 0;  ///< 95 % interval (Wilson)
  double loss = 0;                             ///< mean cross-entropy of a word
  std::int64_t words = 0;                      ///< that were read and have a label
  std::int64_t cut = 0;                        ///< that were beyond the longest sequence
  std::int64_t examples = 0, tokens = 0;
  double forward_seconds = 0;  ///< the model alone
  /// Where labels spell entities: all of them, and by type.
  bool has_entities = false;
  EntityCount entities = {};
  std::map<std::string, EntityCount> types = {};

  /// What is to be high: F1 of entities, or accuracy where there are none.
  double score() const { return has_entities ? entities.f1() : accuracy; }
};

/// Labels the words of every example once and compares. Results do not depend on the batches.
WordScore evaluate_words(Classifier& classifier, ExampleSource& source,
                         const std::vector<std::string>& label_names,
                         const EvaluationOptions& options = {});

}  // namespace lathe::train
