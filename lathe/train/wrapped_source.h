#pragma once

#include <memory>
#include <utility>

#include "lathe/train/example_source.h"

namespace lathe::train {

/// Another source as it is, for those that add something to its batches.
class WrappedSource : public ExampleSource {
 public:
  std::int64_t size() const override { return source_->size(); }
  std::vector<std::int64_t> lengths() override { return source_->lengths(); }
  std::int32_t label(std::int64_t example) const override { return source_->label(example); }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override {
    return source_->training_batch(examples, epoch);
  }
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override {
    return source_->evaluation_batch(examples);
  }

 protected:
  explicit WrappedSource(std::shared_ptr<ExampleSource> source) : source_(std::move(source)) {}

 private:
  std::shared_ptr<ExampleSource> source_;
};

}  // namespace lathe::train
