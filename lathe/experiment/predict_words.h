#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/sentence_reader.h"
#include "lathe/experiment/predict.h"

/// Labels of words, as a model for `tokens` gives them.
namespace lathe::experiment {

/// What a model says of one word; nothing of one beyond the longest sequence, or of one that its
/// tokenizer has no piece for.
struct WordPrediction {
  std::size_t label = 0;
  double probability = 0;
};
using SentencePrediction = std::vector<std::optional<WordPrediction>>;

/// Labels sentences, group after group, as the model was trained to read them.
class WordPredictor {
 public:
  WordPredictor(const io::Model& model, const engine::ExecutionOptions& execution,
                const PredictorOptions& options = {});
  /// One for each word of each sentence, in their order.
  std::vector<SentencePrediction> predict(std::span<const data::Sentence> sentences);
  const std::vector<std::string>& label_names() const { return label_names_; }

 private:
  std::vector<std::string> label_names_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::int64_t length_;
  train::Classifier classifier_;
};

/// How sentences to be labelled are written: one a line, as in CoNLL's files, or as objects.
enum class SentenceFormat { Lines, Conll, Jsonl };
/// The format called `lines`, `conll` or `jsonl`.
SentenceFormat parse_sentence_format(std::string_view name);
/// The format of a file by the end of its name; lines where it tells none.
SentenceFormat sentence_format_of(const std::string& path);

/// Labels the sentences of `contents` and hands each over as lines: a word, a tab and its label
/// each, `-` where there is none, and an empty line behind them; or as a JSON object.
void predict_sentences(WordPredictor& predictor, std::string_view contents, SentenceFormat format,
                       const data::ColumnOptions& columns, bool is_json,
                       const std::function<void(const std::string&)>& write);

/// Loads a model to be asked: what it was saved for where that is `tokens`, else a classifier.
io::Model load_for_prediction(const std::string& model);

}  // namespace lathe::experiment
