#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lathe/core/label_kind.h"
#include "lathe/data/columns.h"

namespace lathe::data {

/// What stands between the labels of one row where it has several.
inline constexpr char kBetweenLabels = '\x1f';

/// A row as it is written: the label is still text, and empty in an unlabelled split.
struct Row {
  std::string text;
  std::string second = {};  ///< of a pair
  bool is_pair = false;
  std::string label = {};
  /// Whether the label is a list, whose parts stand between `kBetweenLabels`.
  bool has_label_list = false;
  /// Where the row starts, for messages.
  std::int64_t line = 0;
  bool operator==(const Row&) const = default;
};

using TakeRow = std::function<void(Row&&)>;

/// A file format of datasets. Hands over the rows of `contents` one after the other; a UserError
/// starts with the line number.
struct DatasetReader {
  std::string_view extension;
  void (*read)(std::string_view contents, const ColumnOptions& columns, bool labelled,
               const TakeRow& take);
};

/// With a header as CSV, but without quotes: a tab always ends a field. Without one
/// `label<TAB>text`, or only `text`, one a line; or columns by number. Only "\n" ends a line.
void read_tsv(std::string_view contents, const ColumnOptions& columns, bool labelled,
              const TakeRow& take);
/// RFC 4180 with a header, or without one and columns by number.
void read_csv(std::string_view contents, const ColumnOptions& columns, bool labelled,
              const TakeRow& take);
/// One JSON object a line, columns by key; a label may be a text, a number, true, false or a list.
void read_jsonl(std::string_view contents, const ColumnOptions& columns, bool labelled,
                const TakeRow& take);

/// Whether columns of a table without a header are told, or known from a model's training, by their
/// numbers; otherwise such a table has its usual form.
bool has_told_columns(const ColumnOptions& options, std::size_t num_columns);

/// The row of these fields: its texts and its label, which several columns of 0 and 1 make a list.
Row make_row(const std::vector<std::string>& columns, std::vector<std::string> fields,
             const ColumnChoice& choice, std::int64_t line);

}  // namespace lathe::data
