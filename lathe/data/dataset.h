#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/core/label_kind.h"
#include "lathe/data/columns.h"
#include "lathe/data/image_reading.h"
#include "lathe/data/text_store.h"

namespace lathe::data {

/// The label of an example of the split `unsup`.
inline constexpr std::int32_t kNoLabel = -1;

/// The label of a token that a loss leaves out, as Hugging Face has it.
inline constexpr std::int32_t kIgnoredLabel = -100;

struct Example {
  std::string text;  ///< empty where the dataset holds arrays, or a store holds the text
  std::int32_t label = kNoLabel;  ///< 0 for a label that is no class
  std::string second = {};        ///< of a pair of texts
  std::int64_t stored = -1;       ///< its number in the dataset's store
  /// Of a sentence whose words have labels: the words, and as many labels or none.
  std::vector<std::string> words = {};
  std::vector<std::int32_t> word_labels = {};
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
  LabelKind label_kind = LabelKind::Class;
  /// Example after example: the number of each, or for sets of labels 1 for a label that it has and
  /// 0 for one that it has not. Empty for classes.
  std::vector<float> targets = {};
  bool has_pairs = false;  ///< of texts
  bool has_words = false;  ///< with a label each, in place of texts
  /// Texts that do not fit memory.
  std::shared_ptr<TextStore> store = {};
  bool operator==(const Dataset&) const = default;

  std::int32_t num_labels() const { return static_cast<std::int32_t>(label_names.size()); }
  /// Targets of one example.
  std::int64_t num_targets() const;
  /// The texts of an example, wherever they are; they may be the store's, read into `buffer`.
  struct Texts {
    std::string_view text, second;
  };
  Texts texts(std::size_t example, TextStore::Texts& buffer) const;
  std::vector<std::int32_t> labels() const;
};

/// What a model reads. It decides how a file is understood: a CSV may hold texts or numbers, a
/// JSONL texts or words.
enum class Reads : std::uint8_t { Text, Numbers, Words };

struct DatasetOptions {
  Reads reads = Reads::Text;
  ColumnOptions columns = {};  ///< of tables
  /// What the labels are; nothing: as the training split's look.
  std::optional<LabelKind> labels = {};
  ImageReading images = {};  ///< what is done to images
  /// Texts of a table that are kept in memory; more of them lie in a file.
  std::int64_t most_bytes = std::int64_t{1} << 30;
};

/// Loads one split (`train`, `test`, `validation`, or the unlabelled `unsup`) of what `spec` names:
/// the built-in `reviews` (with options: `reviews:train=4000,test=1000,seed=1`), or a directory
/// that one of the registered kinds of data recognizes (data_kind.h), or one table, which is
/// `train`.
///
/// Classes are numbered from 0 in the order of their names in `train`, which is that of their
/// numbers where all names are whole numbers, so that every split numbers them alike. Labels of
/// which one has a fraction are numbers; lists are sets of labels. `validation` may also be called
/// `valid`, `val` or `dev`. Making reviews looks at `should_stop`.
Dataset load_dataset(std::string_view spec, std::string_view split,
                     const DatasetOptions& options = {}, const ShouldStop& should_stop = {});
/// The same for texts.
Dataset load_dataset(std::string_view spec, std::string_view split, const ShouldStop& should_stop);

/// Whether `spec` is a directory of data and no name such as `reviews`.
bool is_directory_of_data(std::string_view spec);

/// Whether `spec` has that split.
bool has_split(std::string_view spec, std::string_view split, const DatasetOptions& options = {});

}  // namespace lathe::data
