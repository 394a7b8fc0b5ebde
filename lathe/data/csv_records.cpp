#include "lathe/data/csv_records.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/data/columns.h"

namespace lathe::data {

CsvRecords::CsvRecords(std::string_view contents) : rest_(without_byte_order_mark(contents)) {}

std::vector<std::string> CsvRecords::next() {
  std::vector<std::string> fields;
  do fields.push_back(rest_.starts_with('"') ? quoted_field() : plain_field());
  while (consume(','));
  consume('\r');
  if (!rest_.empty() && !consume('\n'))
    fail("{}: has text after a closing quote, expected a comma", line_);
  ++line_;
  return fields;
}

bool CsvRecords::consume(char expected) {
  if (!rest_.starts_with(expected)) return false;
  rest_.remove_prefix(1);
  return true;
}

std::string CsvRecords::plain_field() {
  std::size_t length = std::min(rest_.find_first_of(",\n"), rest_.size());
  // A carriage return belongs to the line end it stands before.
  if (length > 0 && rest_[length - 1] == '\r' && (length == rest_.size() || rest_[length] == '\n'))
    --length;
  std::string field(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return field;
}

std::string CsvRecords::quoted_field() {
  const std::int64_t first_line = line_;
  std::string field;
  rest_.remove_prefix(1);
  for (;;) {
    const std::size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) fail("{}: has a quote that is never closed", first_line);
    const std::string_view part = rest_.substr(0, quote);
    line_ += std::count(part.begin(), part.end(), '\n');
    field += part;
    rest_.remove_prefix(quote + 1);
    if (!consume('"')) return field;
    field += '"';
  }
}

std::vector<std::size_t> columns_named(const std::vector<std::string>& header,
                                       std::initializer_list<std::string_view> names) {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < header.size(); ++i) {
    std::string name = header[i];
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (std::find(names.begin(), names.end(), name) != names.end()) columns.push_back(i);
  }
  return columns;
}

}  // namespace lathe::data
