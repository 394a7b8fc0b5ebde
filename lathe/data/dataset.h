#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/interrupt.h"

namespace lathe::data {

/// The label of an example of the split `unsup`.
inline constexpr std::int32_t kNoLabel = -1;

struct Example {
  std::string text;  ///< empty where the dataset holds arrays
  std::int32_t label = kNoLabel;
  bool operator==(const Example&) const = default;
};

/// What the examples of features or images hold in place of texts.
struct Arrays {
  /// Of one example: {features}, or {channels, height, width}.
  std::vector<std::int64_t> shape;
  /// Example after example.
  std::vector<float> values;
  bool operator==(const Arrays&) const = default;

  std::int64_t size_of_one() const;
  std::span<const float> row(std::int64_t example) const;
};

/// One split: examples in file order, and the name of each label (its number when it has no other).
struct Dataset {
  std::vector<Example> examples;
  std::vector<std::string> label_names;
  std::optional<Arrays> arrays = std::nullopt;
  bool operator==(const Dataset&) const = default;

  std::int32_t num_labels() const { return static_cast<std::int32_t>(label_names.size()); }
  std::vector<std::int32_t> labels() const;
};

/// What a model reads. It decides how a file is understood: a CSV may hold texts or numbers.
enum class Reads : std::uint8_t { Text, Numbers };

struct DatasetOptions {
  Reads reads = Reads::Text;
};

/// Loads one split (`train`, `test`, `validation`, or the unlabelled `unsup`) of what `spec` names:
/// the built-in `reviews` (with options: `reviews:train=4000,test=1000,seed=1`), or a directory
/// that one of the registered kinds of data recognizes (data_kind.h).
///
/// Labels are 0 to n-1. Labels that are names are numbered in sorted order of the names in `train`,
/// so that every split numbers them alike. Making reviews looks at `should_stop`.
Dataset load_dataset(std::string_view spec, std::string_view split,
                     const DatasetOptions& options = {}, const ShouldStop& should_stop = {});
/// The same for texts.
Dataset load_dataset(std::string_view spec, std::string_view split, const ShouldStop& should_stop);

/// Whether `spec` has that split.
bool has_split(std::string_view spec, std::string_view split, const DatasetOptions& options = {});

}  // namespace lathe::data
