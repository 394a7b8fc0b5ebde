#include <charconv>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/sentence_reader.h"

namespace lathe::data {
namespace {

std::vector<std::string> split_spaces(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; (begin = line.find_first_not_of(' ', begin)) != line.npos;) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    fields.emplace_back(line.substr(begin, end - begin));
    begin = end;
  }
  return fields;
}

// The column that was asked for, or that the model was trained with, by its number from 1.
std::size_t column_of(const std::vector<std::string>& asked, const std::vector<std::string>& known,
                      std::string_view option, std::size_t usual, std::size_t count,
                      std::int64_t line) {
  const std::vector<std::string>& names = asked.empty() ? known : asked;
  if (names.empty()) return usual;
  std::size_t number = 0;
  const std::string& name = names.front();
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_there = error == std::errc{} && end == name.data() + name.size() && number >= 1 &&
                        number <= count && names.size() == 1;
  if (is_there) return number - 1;
  if (asked.empty()) return usual;  // a model that was trained on a table has names instead
  fail("{}: {} {}: expected the number of one of the {} columns", line, option,
       fmt::join(names, ","), count);
}

}  // namespace

void read_conll(std::string_view contents, const ColumnOptions& columns, bool labelled,
                const TakeSentence& take) {
  contents = without_byte_order_mark(contents);
  Sentence sentence;
  std::size_t count = 0, word = 0, label = 0;
  const auto finish = [&] {
    if (!sentence.words.empty()) take(std::move(sentence));
    sentence = {};
  };
  for (std::int64_t number = 1; !contents.empty(); ++number) {
    const std::size_t length = contents.find('\n');
    std::string_view line = contents.substr(0, length);
    contents.remove_prefix(length == std::string_view::npos ? contents.size() : length + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos || line.starts_with("-DOCSTART-")) {
      finish();
      continue;
    }
    std::vector<std::string> fields =
        line.find('\t') != line.npos ? split_tabs(line) : split_spaces(line);
    if (count == 0) {
      count = fields.size();
      if (labelled && count < 2)
        fail("{}: has one column, {}: expected a word and its label", number,
             quote_text(fields.front()));
      word = column_of(columns.text, columns.known_text, "text-column", 0, count, number);
      label =
          column_of(columns.label, columns.known_label, "label-column", count - 1, count, number);
    }
    if (fields.size() != count)
      fail("{}: has {} columns, but the first line has {}", number, fields.size(), count);
    if (fields[word].empty()) fail("{}: has an empty word", number);
    if (labelled && fields[label].empty())
      fail("{}: the word {} has an empty label", number, quote_text(fields[word]));
    if (labelled) sentence.labels.push_back(fields[label]);
    sentence.words.push_back(std::move(fields[word]));
    sentence.lines.push_back(number);
  }
  finish();
}

}  // namespace lathe::data
