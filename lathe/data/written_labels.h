#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lathe::data {

/// The labels of a split as they are written, and where.
struct WrittenLabels {
  std::string place;  ///< the file or folder
  std::vector<std::string> labels = {};
  /// The line of each label; empty where the place has none.
  std::vector<std::int64_t> lines = {};
  /// Whether a label may be a name; otherwise all are integers.
  bool may_be_names = true;
  /// Whether this is the training split, which must have every label.
  bool is_training = false;
};

struct NumberedLabels {
  std::vector<std::int32_t> numbers;
  std::vector<std::string> names;
};

/// Numbers labels from 0. Integers keep their number, which is their name too; names are numbered
/// in sorted order. `training` are the labels of the training split, where there is one: they alone
/// say which labels exist, so that the numbering does not depend on the classes a split happens to
/// hold.
NumberedLabels number_labels(const WrittenLabels& written, const WrittenLabels* training);

}  // namespace lathe::data
