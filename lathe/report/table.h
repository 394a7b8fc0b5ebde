#pragma once

#include <string>
#include <vector>

namespace lathe::report {

/// Rows under headers, for people: aligned plain text, Markdown or HTML from the same cells.
///
/// A column whose cells are all numbers (with an optional unit: `87.1 %`, `12 ms`) is aligned to
/// the right. Cells may come from untrusted files; each form escapes them in its own way.
class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  /// Adds a row; it must have one cell for each header.
  Table& row(std::vector<std::string> cells);

  const std::vector<std::string>& headers() const { return headers_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }
  bool is_numeric(std::size_t column) const;

  /// Headers, a rule and the rows, columns two blanks apart, each line ended by a new line.
  std::string to_text() const;
  std::string to_markdown() const;
  /// A `<table>` element; numeric columns have the class `number`.
  std::string to_html() const;

 private:
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lathe::report
