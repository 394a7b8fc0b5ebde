#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/data/dataset.h"

namespace lathe::data {

/// The labels of a split as they are written, and where.
struct WrittenLabels {
  std::string place;  ///< the file or folder
  std::vector<std::string> labels = {};
  /// The line of each label; empty where the place has none.
  std::vector<std::int64_t> lines = {};
  /// Whether labels are lists, whose parts stand between `kBetweenLabels` (dataset_reader.h).
  bool are_lists = false;
  /// The labels that lists may hold where columns name them; empty: those that occur.
  std::vector<std::string> list_names = {};
};

/// Gives a dataset's examples their labels. `training` are those of the training split, where there
/// is one: they alone say what kind of labels there are (unless `kind` does) and which classes, so
/// that the numbering does not depend on the classes a split happens to hold.
///
/// Whole numbers are classes, named by their digits and in their order; so is any other text. With
/// a fraction in one of them, all are numbers. Lists are sets.
void set_labels(Dataset& dataset, const WrittenLabels& written, const WrittenLabels* training,
                std::optional<LabelKind> kind = {});

/// A label that is a whole number as its digits: 1.0, 01 and +1 are 1. Any other as it is.
std::string label_name(const std::string& written);

}  // namespace lathe::data
