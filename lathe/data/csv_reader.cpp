#include "lathe/core/error.h"
#include "lathe/data/csv_records.h"
#include "lathe/data/dataset_reader.h"

namespace lathe::data {
namespace {

bool is_true(const std::string& text, const std::string& column, std::int64_t line) {
  if (text == "1" || text == "1.0" || text == "true" || text == "True") return true;
  if (text.empty() || text == "0" || text == "0.0" || text == "false" || text == "False")
    return false;
  fail("{}: column {} is \"{}\", expected 1 or 0: several label columns say which labels a row has",
       line, column, text);
}

}  // namespace

Row make_row(const std::vector<std::string>& columns, std::vector<std::string> fields,
             const ColumnChoice& choice, std::int64_t line) {
  Row row{.text = {}, .line = line};
  if (choice.label.size() == 1) {
    row.label = fields[choice.label[0]];
    if (row.label.empty()) fail("{}: has an empty label", line);
  }
  if (choice.label.size() > 1) {
    row.has_label_list = true;
    for (const std::size_t column : choice.label) {
      if (!is_true(fields[column], columns[column], line)) continue;
      if (!row.label.empty()) row.label += kBetweenLabels;
      row.label += columns[column];
    }
  }
  row.text = std::move(fields[choice.text[0]]);
  row.is_pair = choice.text.size() > 1;
  if (row.is_pair) row.second = std::move(fields[choice.text[1]]);
  return row;
}

void read_csv(std::string_view contents, const ColumnOptions& columns, bool labelled,
              const TakeRow& take) {
  CsvRecords records(contents);
  if (records.at_end()) return;
  std::vector<std::string> header, first;
  std::int64_t line = records.line();
  if (columns.header == Header::No) {
    first = records.next();
    header = numbered_columns(first.size());
  } else {
    header = records.next();
  }
  ColumnChoice choice;
  try {
    choice = choose_columns(header, columns, labelled);
  } catch (const UserError& wrong) {
    throw UserError(fmt::format("1: {}", wrong.message()), wrong.hint());
  }
  if (!first.empty()) take(make_row(header, std::move(first), choice, line));
  while (!records.at_end()) {
    line = records.line();
    std::vector<std::string> fields = records.next();
    if (fields.size() == 1 && fields[0].empty()) continue;  // a blank line
    if (fields.size() != header.size())
      fail("{}: has {} fields, but the header has {}", line, fields.size(), header.size());
    take(make_row(header, std::move(fields), choice, line));
  }
}

}  // namespace lathe::data
