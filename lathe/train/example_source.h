#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/core/pass.h"

namespace lathe::train {

/// Some examples in the form a graph reads them.
struct ExampleBatch {
  Feed feed;                           ///< the graph's data inputs, and more than it may read
  std::vector<std::int64_t> examples;  ///< where each row stands in the source
  std::int64_t tokens = 0;             ///< or rows, where examples have no length
};

/// Examples that a graph can be fed with, batch by batch: texts, rows of numbers, images. What a
/// trainer, an evaluation and a calibration work on.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  virtual std::int64_t size() const = 0;
  /// The tokens of every example, 1 where examples have no length. May wait until all are known.
  virtual std::vector<std::int64_t> lengths() = 0;
  /// The class of an example; `data::kNoLabel` where it has none.
  virtual std::int32_t label(std::int64_t example) const = 0;
  /// The inputs of a training graph for these examples. What is random in them depends on the epoch
  /// and the example, not on the batch.
  virtual ExampleBatch training_batch(std::span<const std::int64_t> examples,
                                      std::int64_t epoch) = 0;
  /// The inputs of a graph that is measured on these examples: the same every time.
  virtual ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) = 0;
};

}  // namespace lathe::train
