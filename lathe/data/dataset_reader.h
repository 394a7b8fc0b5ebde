#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

/// A row as it is written: the label is still text, and empty in an unlabelled split.
struct Row {
  std::string text;
  std::string label;
  /// Where the row starts, for messages.
  std::int64_t line = 0;
  bool operator==(const Row&) const = default;
};

/// A file format of datasets. Reads all rows of `contents`; a UserError starts with the line
/// number.
struct DatasetReader {
  std::string_view extension;
  /// Whether labels may be names; otherwise they are integers.
  bool names_labels;
  std::vector<Row> (*read)(std::string_view contents, bool labelled);
};

/// `label<TAB>text`, or only `text`, one a line: no header, no quoting, only "\n" ends a line.
std::vector<Row> read_tsv(std::string_view contents, bool labelled);
/// RFC 4180 with a header that names a text column (text, review, sentence) and a label column
/// (label, sentiment).
std::vector<Row> read_csv(std::string_view contents, bool labelled);
/// One JSON object a line with the keys `text` and `label`.
std::vector<Row> read_jsonl(std::string_view contents, bool labelled);

}  // namespace lathe::data
