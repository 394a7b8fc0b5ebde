#pragma once

#include <memory>
#include <optional>

#include "lathe/data/tokenized_dataset.h"
#include "lathe/train/example_source.h"
#include "lathe/train/token_stream.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {

/// How texts are fed to a graph.
struct TextFeeding {
  Objective objective = {};
  /// The id that fills padded rows, for a graph in padded form; none: sequences are packed.
  std::optional<std::int32_t> padding_id = {};
};

/// What a graph that is measured reads of a batch.
Feed evaluation_feed(const data::Batch& batch, const TextFeeding& feeding);

/// Texts that are tokenized: packed sequences, or padded ones with their mask.
class TokenizedTexts final : public ExampleSource {
 public:
  TokenizedTexts(data::TokenizedDataset tokens, TextFeeding feeding)
      : tokens_(std::move(tokens)), feeding_(std::move(feeding)) {}
  std::int64_t size() const override { return tokens_.size(); }
  std::vector<std::int64_t> lengths() override { return tokens_.lengths(); }
  std::int32_t label(std::int64_t example) const override {
    return tokens_.labels[static_cast<std::size_t>(example)];
  }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override;

 private:
  data::TokenizedDataset tokens_;
  TextFeeding feeding_;
};

/// Texts that are tokenized each time they are asked for, and forgotten: of data larger than
/// memory.
class UnkeptTexts final : public ExampleSource {
 public:
  /// The dataset must outlive the source.
  UnkeptTexts(const data::Dataset& dataset, std::shared_ptr<const data::Tokenizer> tokenizer,
              std::int64_t max_length, data::Truncation truncation, TextFeeding feeding)
      : dataset_(dataset),
        tokenizer_(std::move(tokenizer)),
        max_length_(max_length),
        truncation_(truncation),
        feeding_(std::move(feeding)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(dataset_.examples.size()); }
  std::vector<std::int64_t> lengths() override;
  std::int32_t label(std::int64_t example) const override {
    return dataset_.examples[static_cast<std::size_t>(example)].label;
  }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override;

 private:
  data::Batch batch(std::span<const std::int64_t> examples) const;

  const data::Dataset& dataset_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::int64_t max_length_;
  data::Truncation truncation_;
  TextFeeding feeding_;
};

/// Texts that are tokenized while training is under way, in the order it needs them.
class StreamedTexts final : public ExampleSource {
 public:
  /// The dataset must outlive the source; see TokenStream for the rest.
  StreamedTexts(const data::Dataset& dataset, std::shared_ptr<const data::Tokenizer> tokenizer,
                std::int64_t max_length, data::Truncation truncation,
                std::vector<std::int64_t> order, TextFeeding feeding)
      : dataset_(dataset),
        tokenizer_(std::move(tokenizer)),
        stream_(dataset, *tokenizer_, max_length, truncation, std::move(order)),
        feeding_(std::move(feeding)) {}
  std::int64_t size() const override { return stream_.size(); }
  std::vector<std::int64_t> lengths() override { return stream_.lengths(); }
  std::int32_t label(std::int64_t example) const override {
    return dataset_.examples[static_cast<std::size_t>(example)].label;
  }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override;

 private:
  const data::Dataset& dataset_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;  // the stream's
  TokenStream stream_;
  TextFeeding feeding_;
};

}  // namespace lathe::train
