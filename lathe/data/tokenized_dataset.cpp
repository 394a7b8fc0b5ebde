#include "lathe/data/tokenized_dataset.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

constexpr std::int64_t kExamplesPerTask = 256;

// What one task makes; put one after the other when all are done.
struct Part {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> lengths;
  std::vector<std::int32_t> first_lengths;
  std::vector<std::int32_t> token_labels;
};

void encode_words(const Example& example, const Tokenizer& tokenizer, const EncodedTokens& tokens,
                  std::int64_t max_length) {
  std::vector<std::int32_t> words;
  tokenizer.encode_words(example.words, tokens.ids, words, max_length);
  if (tokens.labels == nullptr) return;
  for (const std::int32_t word : words)
    tokens.labels->push_back(word < 0 || example.word_labels.empty()
                                 ? kIgnoredLabel
                                 : example.word_labels[static_cast<std::size_t>(word)]);
}

}  // namespace

std::vector<std::int64_t> TokenizedDataset::lengths() const {
  std::vector<std::int64_t> all;
  all.reserve(labels.size());
  for (std::int64_t i = 0; i < size(); ++i) all.push_back(length(i));
  return all;
}

std::int32_t encode_example(const Dataset& dataset, std::size_t example, const Tokenizer& tokenizer,
                            const EncodedTokens& tokens, std::int64_t max_length,
                            Truncation truncation) {
  if (dataset.has_words) {
    encode_words(dataset.examples[example], tokenizer, tokens, max_length);
    return 0;
  }
  TextStore::Texts buffer;
  const Dataset::Texts texts = dataset.texts(example, buffer);
  if (dataset.has_pairs)
    return static_cast<std::int32_t>(
        tokenizer.encode_pair(texts.text, texts.second, tokens.ids, max_length, truncation));
  tokenizer.encode(texts.text, tokens.ids, max_length, truncation);
  return 0;
}

TokenizedDataset tokenize(const Dataset& dataset, const Tokenizer& tokenizer,
                          std::int64_t max_length, Truncation truncation, ThreadPool& pool,
                          const ShouldStop& should_stop) {
  check(!dataset.arrays, "texts to tokenize");
  tokenizer.check_length(max_length);
  const auto total = static_cast<std::int64_t>(dataset.examples.size());
  const std::int64_t num_tasks = (total + kExamplesPerTask - 1) / kExamplesPerTask;
  std::vector<Part> parts(static_cast<std::size_t>(num_tasks));
  pool.run(num_tasks, [&](std::int64_t task, int) {
    if (should_stop && should_stop()) throw Interrupted();
    const std::int64_t begin = task * kExamplesPerTask;
    const std::int64_t end = std::min(begin + kExamplesPerTask, total);
    Part& part = parts[static_cast<std::size_t>(task)];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t before = part.ids.size();
      const std::int32_t first =
          encode_example(dataset, static_cast<std::size_t>(i), tokenizer,
                         {part.ids, &part.token_labels}, max_length, truncation);
      if (dataset.has_pairs) part.first_lengths.push_back(first);
      part.lengths.push_back(static_cast<std::int64_t>(part.ids.size() - before));
    }
  });

  TokenizedDataset tokenized;
  std::size_t num_ids = 0;
  for (const Part& part : parts) num_ids += part.ids.size();
  tokenized.ids.reserve(num_ids);
  tokenized.offsets.reserve(dataset.examples.size() + 1);
  for (Part& part : parts) {
    tokenized.ids.insert(tokenized.ids.end(), part.ids.begin(), part.ids.end());
    for (const std::int64_t length : part.lengths)
      tokenized.offsets.push_back(tokenized.offsets.back() + length);
    tokenized.first_lengths.insert(tokenized.first_lengths.end(), part.first_lengths.begin(),
                                   part.first_lengths.end());
    tokenized.token_labels.insert(tokenized.token_labels.end(), part.token_labels.begin(),
                                  part.token_labels.end());
    part = {};  // so that the ids are not held twice to the end
  }
  tokenized.labels = dataset.labels();
  return tokenized;
}

}  // namespace lathe::data
