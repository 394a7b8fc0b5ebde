#include "lathe/experiment/predict_words.h"

#include <algorithm>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/train/answers.h"
#include "lathe/train/make_source.h"
#include "lathe/train/text_source.h"

namespace lathe::experiment {
namespace {

constexpr std::int64_t kTokensAtOnce = 4096;
constexpr std::size_t kSentencesAtOnce = 64;  // sentences that are labelled at once

// Words between spaces, a sentence a line; an empty line is none.
void read_lines(std::string_view contents, const data::TakeSentence& take) {
  contents = data::without_byte_order_mark(contents);
  for (std::int64_t number = 1; !contents.empty(); ++number) {
    const std::size_t length = std::min(contents.find('\n'), contents.size());
    const std::string_view line = contents.substr(0, length);
    contents.remove_prefix(std::min(length + 1, contents.size()));
    data::Sentence sentence;
    constexpr std::string_view kSpaces = " \t\r";
    for (std::size_t begin = 0; (begin = line.find_first_not_of(kSpaces, begin)) != line.npos;) {
      const std::size_t end = std::min(line.find_first_of(kSpaces, begin), line.size());
      sentence.words.emplace_back(line.substr(begin, end - begin));
      sentence.lines.push_back(number);
      begin = end;
    }
    if (!sentence.words.empty()) take(std::move(sentence));
  }
}

std::string to_lines(const data::Sentence& sentence, const SentencePrediction& prediction,
                     const std::vector<std::string>& labels) {
  std::string lines;
  for (std::size_t i = 0; i < sentence.words.size(); ++i)
    lines += fmt::format("{}\t{}\n", sentence.words[i],
                         prediction[i] ? labels[prediction[i]->label] : std::string("-"));
  return lines;
}

nlohmann::ordered_json to_json(const data::Sentence& sentence, const SentencePrediction& prediction,
                               const std::vector<std::string>& labels) {
  nlohmann::ordered_json line{{"tokens", sentence.words},
                              {"labels", nlohmann::ordered_json::array()},
                              {"probabilities", nlohmann::ordered_json::array()}};
  for (const std::optional<WordPrediction>& word : prediction) {
    line["labels"].push_back(word ? nlohmann::ordered_json(labels[word->label])
                                  : nlohmann::ordered_json());
    line["probabilities"].push_back(word ? nlohmann::ordered_json(word->probability)
                                         : nlohmann::ordered_json());
  }
  return line;
}

}  // namespace

WordPredictor::WordPredictor(const io::Model& model, const engine::ExecutionOptions& execution,
                             const PredictorOptions& options)
    : label_names_(model.label_names),
      tokenizer_(train::load_tokenizer(model)),
      length_(train::text_length(model, options.length)),
      classifier_(model, {.execution = execution}) {}

std::vector<SentencePrediction> WordPredictor::predict(std::span<const data::Sentence> sentences) {
  // Each word's label is its own number, so that what comes back says which word it was.
  data::Dataset examples;
  examples.has_words = true;
  std::vector<SentencePrediction> result;
  data::TokenizedDataset tokens;
  for (const data::Sentence& sentence : sentences) {
    data::Example example;
    example.words = sentence.words;
    example.word_labels.resize(sentence.words.size());
    std::iota(example.word_labels.begin(), example.word_labels.end(), 0);
    examples.examples.push_back(std::move(example));
    data::encode_example(examples, examples.examples.size() - 1, *tokenizer_,
                         {tokens.ids, &tokens.token_labels}, length_, data::Truncation::Head);
    tokens.offsets.push_back(static_cast<std::int64_t>(tokens.ids.size()));
    tokens.labels.push_back(data::kNoLabel);
    result.emplace_back(sentence.words.size());
  }
  const data::BatchPlan plan =
      data::plan_batches(tokens.lengths(), {.max_examples = 0, .max_tokens = kTokensAtOnce});
  train::TokenizedTexts source(std::move(tokens), {.objective = {.name = "tokens", .masking = {}}});
  for (std::int64_t b = 0; b < plan.num_batches(); ++b) {
    const train::ExampleBatch batch = source.evaluation_batch(plan.examples(b));
    const Tensor logits = classifier_.logits(batch.feed);
    const std::span<const float> values = logits.data<float>();
    const auto words = batch.feed.at("labels").data<std::int32_t>();
    const auto offsets = batch.feed.at("offsets").data<std::int32_t>();
    const std::size_t width = label_names_.size();
    for (std::size_t row = 0; row < batch.examples.size(); ++row)
      for (auto token = static_cast<std::size_t>(offsets[row]);
           token < static_cast<std::size_t>(offsets[row + 1]); ++token) {
        if (words[token] == data::kIgnoredLabel) continue;
        const std::span<const float> own = values.subspan(token * width, width);
        const auto best = static_cast<std::size_t>(std::ranges::max_element(own) - own.begin());
        result[static_cast<std::size_t>(batch.examples[row])]
              [static_cast<std::size_t>(words[token])] =
                  WordPrediction{best, train::softmax(own)[best]};
      }
  }
  return result;
}

SentenceFormat parse_sentence_format(std::string_view name) {
  if (name == "lines") return SentenceFormat::Lines;
  if (name == "conll") return SentenceFormat::Conll;
  if (name == "jsonl") return SentenceFormat::Jsonl;
  throw unknown_name("format", name, {"lines", "conll", "jsonl"});
}

SentenceFormat sentence_format_of(const std::string& path) {
  for (const std::string_view packed : {"", ".zst", ".gz"}) {
    if (path.ends_with(fmt::format(".conll{}", packed))) return SentenceFormat::Conll;
    if (path.ends_with(fmt::format(".jsonl{}", packed))) return SentenceFormat::Jsonl;
  }
  return SentenceFormat::Lines;
}

void predict_sentences(WordPredictor& predictor, std::string_view contents, SentenceFormat format,
                       const data::ColumnOptions& columns, bool is_json,
                       const std::function<void(const std::string&)>& write) {
  std::vector<data::Sentence> group;
  const auto answer = [&] {
    const std::vector<SentencePrediction> predictions = predictor.predict(group);
    for (std::size_t i = 0; i < group.size(); ++i)
      write(is_json ? to_json(group[i], predictions[i], predictor.label_names())
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                    : to_lines(group[i], predictions[i], predictor.label_names()));
    group.clear();
  };
  const auto take = [&](data::Sentence&& sentence) {
    group.push_back(std::move(sentence));
    if (group.size() == kSentencesAtOnce) answer();
  };
  if (format == SentenceFormat::Lines)
    read_lines(contents, take);
  else if (format == SentenceFormat::Conll)
    data::read_conll(contents, columns, false, take);
  else
    data::read_sentences_jsonl(contents, columns, false, take);
  if (!group.empty()) answer();
}

io::Model load_for_prediction(const std::string& model) {
  io::Model loaded = io::load_model(model, {});
  if (models::gives_labels(loaded.task)) return loaded;
  return io::load_model(model, {.task = "classify"});
}

}  // namespace lathe::experiment
