#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"
#include "lathe/train/classifier.h"

namespace lathe::experiment {

/// What a model's answers are about.
struct AnswerKind {
  LabelKind labels = LabelKind::Class;
  std::vector<std::string> label_names = {};
  std::string separator = ",";  ///< between the labels of a set
};
AnswerKind answer_kind(const io::Model& model);

/// What a model says of one text, of a pair of them, or of an image.
struct Prediction {
  std::size_t label = 0;  ///< the likeliest, of classes
  /// Of classes they sum to one; of sets each is its label's own; of numbers there are none.
  std::vector<double> probabilities;
  std::vector<float> logits;  ///< a number's is the number

  /// Labels by probability, the likeliest first, at most `count`; of equal ones the first.
  std::vector<std::size_t> likeliest(std::size_t count) const;
  /// Labels of a set: those above one half.
  std::vector<std::size_t> chosen() const;
};

/// The answer that a row of logits is.
Prediction read_logits(std::span<const float> logits, LabelKind labels);

/// How texts are read; what is left open is as the model was trained.
struct PredictorOptions {
  std::int64_t length = 0;
  std::optional<data::Truncation> truncation = {};
};

/// Answers texts, group after group, as the model was trained to read them.
class Predictor {
 public:
  Predictor(const io::Model& model, const engine::ExecutionOptions& execution,
            const PredictorOptions& options = {});
  /// One for each text, in their order.
  std::vector<Prediction> predict(std::span<const std::string> texts);
  /// The same for examples, which may be pairs of texts; their labels are not looked at.
  std::vector<Prediction> predict(const data::Dataset& examples);

  /// Whether the model was made for pairs of texts.
  bool reads_pairs() const { return reads_pairs_; }
  const AnswerKind& answers() const { return answers_; }
  const io::Reading& reading() const { return reading_; }

 private:
  AnswerKind answers_;
  io::Reading reading_;
  bool reads_pairs_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::int64_t length_;
  data::Truncation truncation_;
  train::Classifier classifier_;
};

}  // namespace lathe::experiment
