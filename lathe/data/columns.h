#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

/// Whether the first line of a table names its columns.
enum class Header : std::uint8_t { Auto, Yes, No };
/// The choice called `auto`, `yes` or `no`.
Header parse_header(std::string_view name);
std::string_view name(Header header);

/// Which columns of a table hold the texts and the labels.
struct ColumnOptions {
  /// By name, or by number from 1 in a table without a header. One, or two for pairs of texts;
  /// empty: by the names that everybody uses.
  std::vector<std::string> text = {};
  /// One; or several, each a label that a row has (1) or has not (0). Empty: by the usual names.
  std::vector<std::string> label = {};
  /// Names that are looked for before those that everybody uses: what a model was trained with.
  std::vector<std::string> known_text = {}, known_label = {};
  /// Of a .tsv: auto takes the first line for one where it holds names that are looked for.
  Header header = Header::Auto;
  /// What stands between the labels of a row that has several, in one column.
  std::string separator = ",";
  bool operator==(const ColumnOptions&) const = default;
};

/// Columns of texts and of labels by their positions.
struct ColumnChoice {
  std::vector<std::size_t> text, label;
};

/// Finds the columns in a table that has these, labels too where it must have them. A UserError
/// lists the columns found; it names no place.
ColumnChoice choose_columns(const std::vector<std::string>& columns, const ColumnOptions& options,
                            bool labelled);

/// Whether the fields of a first line are names of columns, by what is looked for.
bool is_header(const std::vector<std::string>& fields, const ColumnOptions& options, bool labelled);

/// Names of columns for a table without any: 1, 2, ...
std::vector<std::string> numbered_columns(std::size_t count);

/// The fields of a line between its tabs.
std::vector<std::string> split_tabs(std::string_view line);

/// The text without the mark with which some programs begin a file of UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace lathe::data
