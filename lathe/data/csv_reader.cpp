#include "lathe/core/error.h"
#include "lathe/data/csv_records.h"
#include "lathe/data/dataset_reader.h"

namespace lathe::data {

std::vector<Row> read_csv(std::string_view contents, bool labelled) {
  std::vector<Row> rows;
  CsvRecords records(contents);
  if (records.at_end()) return rows;
  const std::vector<std::string> header = records.next();
  const auto text = columns_named(header, {"text", "review", "sentence"});
  const auto label = columns_named(header, {"label", "sentiment"});
  if (text.empty())
    fail("1: the header is \"{}\", expected a column named text, review or sentence",
         fmt::join(header, ","));
  if (labelled && label.empty())
    fail("1: the header is \"{}\", expected a column named label or sentiment",
         fmt::join(header, ","));
  while (!records.at_end()) {
    const std::int64_t line = records.line();
    std::vector<std::string> fields = records.next();
    if (fields.size() == 1 && fields[0].empty()) continue;  // a blank line
    if (fields.size() != header.size())
      fail("{}: has {} fields, but the header has {}", line, fields.size(), header.size());
    if (labelled && fields[label[0]].empty()) fail("{}: has an empty label", line);
    rows.push_back({std::move(fields[text[0]]), labelled ? std::move(fields[label[0]]) : "", line});
  }
  return rows;
}

}  // namespace lathe::data
