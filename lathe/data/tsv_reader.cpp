#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/data/dataset_reader.h"

namespace lathe::data {
namespace {

// Lines of a text, which only "\n" ends; a carriage return before it belongs to it.
class Lines {
 public:
  explicit Lines(std::string_view contents) : rest_(without_byte_order_mark(contents)) {}
  bool at_end() const { return rest_.empty(); }
  std::int64_t number() const { return number_; }
  std::string_view next() {
    const std::size_t length = rest_.find('\n');
    std::string_view line = rest_.substr(0, length);
    rest_.remove_prefix(length == std::string_view::npos ? rest_.size() : length + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number_;
    return line;
  }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

// label<TAB>text, where the text may hold tabs; or nothing but text.
Row plain_row(std::string_view line, bool labelled, std::int64_t number) {
  Row row{.text = {}, .line = number};
  if (labelled) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) fail("{}: has no tab, expected label<TAB>text", number);
    row.label = line.substr(0, tab);
    if (row.label.empty()) fail("{}: has an empty label, expected label<TAB>text", number);
    line.remove_prefix(tab + 1);
  }
  row.text = line;
  return row;
}

}  // namespace

bool has_told_columns(const ColumnOptions& options, std::size_t num_columns) {
  if (!options.text.empty() || !options.label.empty()) return true;
  const std::vector<std::string> numbers = numbered_columns(num_columns);
  return !options.known_text.empty() &&
         std::ranges::all_of(options.known_text, [&](const std::string& name) {
           return std::ranges::find(numbers, name) != numbers.end();
         });
}

void read_tsv(std::string_view contents, const ColumnOptions& columns, bool labelled,
              const TakeRow& take) {
  Lines lines(contents);
  if (lines.at_end()) return;
  std::string_view line = lines.next();
  const std::vector<std::string> first = split_tabs(line);
  const bool has_header = is_header(first, columns, labelled);
  if (!has_header && !has_told_columns(columns, first.size())) {
    take(plain_row(line, labelled, lines.number()));
    while (!lines.at_end()) {
      line = lines.next();
      take(plain_row(line, labelled, lines.number()));
    }
    return;
  }
  const std::vector<std::string> header = has_header ? first : numbered_columns(first.size());
  ColumnChoice choice;
  try {
    choice = choose_columns(header, columns, labelled);
  } catch (const UserError& wrong) {
    throw UserError(fmt::format("1: {}", wrong.message()), wrong.hint());
  }
  if (!has_header) take(make_row(header, first, choice, 1));
  while (!lines.at_end()) {
    line = lines.next();
    if (line.empty()) continue;
    std::vector<std::string> fields = split_tabs(line);
    if (fields.size() != header.size())
      fail("{}: has {} fields between tabs, but the first line has {}", lines.number(),
           fields.size(), header.size());
    take(make_row(header, std::move(fields), choice, lines.number()));
  }
}

}  // namespace lathe::data
