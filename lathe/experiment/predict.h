#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/data/tokenizer.h"
#include "lathe/train/classifier.h"

namespace lathe::experiment {

/// What a classifier says of one text.
struct Prediction {
  std::size_t label = 0;  ///< the likeliest
  std::vector<double> probabilities;
  std::vector<float> logits;
};

/// Classifies texts, group after group.
class Predictor {
 public:
  Predictor(const io::Model& model, const engine::ExecutionOptions& execution);
  /// One for each text, in their order.
  std::vector<Prediction> predict(std::span<const std::string> texts);

 private:
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::int64_t length_;
  train::Classifier classifier_;
};

}  // namespace lathe::experiment
