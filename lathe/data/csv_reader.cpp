#include <algorithm>
#include <initializer_list>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/dataset_reader.h"

namespace lathe::data {
namespace {

// Reads one record at a time; a quoted field may hold commas, line ends and doubled quotes.
class RecordReader {
 public:
  explicit RecordReader(std::string_view contents) : rest_(contents) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);  // spreadsheets write the mark
  }
  bool at_end() const { return rest_.empty(); }
  /// The line at which the next record starts.
  std::int64_t line() const { return line_; }

  std::vector<std::string> next() {
    std::vector<std::string> fields;
    do fields.push_back(rest_.starts_with('"') ? quoted_field() : plain_field());
    while (consume(','));
    consume('\r');
    if (!rest_.empty() && !consume('\n'))
      fail("{}: has text after a closing quote, expected a comma", line_);
    ++line_;
    return fields;
  }

 private:
  bool consume(char expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string plain_field() {
    std::size_t length = std::min(rest_.find_first_of(",\n"), rest_.size());
    // A carriage return belongs to the line end it stands before.
    if (length > 0 && rest_[length - 1] == '\r' &&
        (length == rest_.size() || rest_[length] == '\n'))
      --length;
    std::string field(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return field;
  }
  std::string quoted_field() {
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

  std::string_view rest_;
  std::int64_t line_ = 1;
};

std::optional<std::size_t> column_of(const std::vector<std::string>& header,
                                     std::initializer_list<std::string_view> names) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    std::string name = header[i];
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (std::find(names.begin(), names.end(), name) != names.end()) return i;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Row> read_csv(std::string_view contents, bool labelled) {
  std::vector<Row> rows;
  RecordReader records(contents);
  if (records.at_end()) return rows;
  const std::vector<std::string> header = records.next();
  const auto text = column_of(header, {"text", "review", "sentence"});
  const auto label = column_of(header, {"label", "sentiment"});
  if (!text)
    fail("1: the header is \"{}\", expected a column named text, review or sentence",
         fmt::join(header, ","));
  if (labelled && !label)
    fail("1: the header is \"{}\", expected a column named label or sentiment",
         fmt::join(header, ","));
  while (!records.at_end()) {
    const std::int64_t line = records.line();
    std::vector<std::string> fields = records.next();
    if (fields.size() == 1 && fields[0].empty()) continue;  // a blank line
    if (fields.size() != header.size())
      fail("{}: has {} fields, but the header has {}", line, fields.size(), header.size());
    if (labelled && fields[*label].empty()) fail("{}: has an empty label", line);
    rows.push_back({std::move(fields[*text]), labelled ? std::move(fields[*label]) : "", line});
  }
  return rows;
}

}  // namespace lathe::data
