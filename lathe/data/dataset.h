#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/interrupt.h"

namespace lathe::data {

/// The label of an example of the split `unsup`.
inline constexpr std::int32_t kNoLabel = -1;

struct Example {
  std::string text;
  std::int32_t label = kNoLabel;
  bool operator==(const Example&) const = default;
};

/// One split: examples in file order, and the name of each label (its number when it has no other).
struct Dataset {
  std::vector<Example> examples;
  std::vector<std::string> label_names;
  bool operator==(const Dataset&) const = default;

  std::int32_t num_labels() const { return static_cast<std::int32_t>(label_names.size()); }
  std::vector<std::int32_t> labels() const;
};

/// Loads one split (`train`, `test`, `validation`, or the unlabelled `unsup`) of what `spec` names:
/// the built-in `reviews` (with options: `reviews:train=4000,test=1000,seed=1`), or a directory
/// with SPLIT.tsv, .csv or .jsonl, each also as .zst, or with folders SPLIT/pos and SPLIT/neg of
/// .txt files.
///
/// Labels are 0 to n-1. Labels that are names are numbered in sorted order of the names in `train`,
/// so that every split numbers them alike. Making reviews looks at `should_stop`.
Dataset load_dataset(std::string_view spec, std::string_view split,
                     const ShouldStop& should_stop = {});

}  // namespace lathe::data
