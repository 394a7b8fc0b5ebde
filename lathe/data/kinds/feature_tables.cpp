// SPLIT.csv of numbers: a header, a column with the label, every other column a feature.
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/csv_records.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/text_file.h"
#include "lathe/data/written_labels.h"

namespace lathe::data::feature_tables {
namespace {

struct Table {
  std::vector<std::string> features;  // the names of the columns
  std::vector<float> values;
  WrittenLabels labels;
  std::size_t num_rows = 0;
};

float parse_feature(std::string_view text, std::int64_t line, const std::string& column) {
  const std::size_t first = text.find_first_not_of(" \t");
  const std::string_view number =
      first == text.npos ? std::string_view()
                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
  float value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size() || !std::isfinite(value))
    fail("{}: column {} is {}, expected a number", line, quote_text(column), quote_text(text));
  return value;
}

// The label's column: the one asked for, the one a model was trained with, or a usual one.
std::vector<std::size_t> label_columns(const std::vector<std::string>& header,
                                       const ColumnOptions& columns) {
  if (columns.label.size() > 1)
    fail("label-column {}: expected one column", fmt::join(columns.label, ","));
  for (const std::vector<std::string>* const names : {&columns.label, &columns.known_label})
    if (names->size() == 1)
      for (std::size_t i = 0; i < header.size(); ++i)
        if (header[i] == names->front()) return {i};
  if (!columns.label.empty())
    fail("1: label-column {}: the columns are {}", columns.label[0], fmt::join(header, ", "));
  return columns_named(header, {"label", "class", "target", "species"});
}

Table read_rows(std::string_view contents, const ColumnOptions& columns, bool labelled) {
  Table table;
  CsvRecords records(contents);
  if (records.at_end()) return table;
  const std::vector<std::string> header = records.next();
  const std::vector<std::size_t> label = label_columns(header, columns);
  const std::string shown = quote_text(fmt::format("{}", fmt::join(header, ",")));
  if (label.size() > 1)
    fail("1: the header is {}, expected one column named label, class, target or species, not {}",
         shown, label.size());
  if (labelled && label.empty())
    fail("1: the header is {}, expected a column named label, class, target or species", shown);
  if (header.size() == label.size()) fail("1: the header is {}, expected features", shown);
  for (std::size_t i = 0; i < header.size(); ++i)
    if (label.empty() || i != label[0]) table.features.push_back(header[i]);

  while (!records.at_end()) {
    const std::int64_t line = records.line();
    const std::vector<std::string> fields = records.next();
    if (fields.size() == 1 && fields[0].empty()) continue;  // a blank line
    if (fields.size() != header.size())
      fail("{}: has {} fields, but the header has {}", line, fields.size(), header.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (label.empty() || i != label[0]) {
        table.values.push_back(parse_feature(fields[i], line, header[i]));
      } else if (labelled) {
        if (fields[i].empty()) fail("{}: has an empty label", line);
        table.labels.labels.push_back(fields[i]);
        table.labels.lines.push_back(line);
      }
    }
    ++table.num_rows;
  }
  return table;
}

Table read(const std::filesystem::path& file, const ColumnOptions& columns, bool labelled) {
  const std::string contents = read_text_file(file);
  try {
    Table table = read_rows(contents, columns, labelled);
    table.labels.place = file.string();
    return table;
  } catch (const UserError& wrong) {
    // The message begins with the line number.
    throw UserError(fmt::format("{}:{}", file.string(), wrong.message()), wrong.hint());
  }
}

bool has_split(const std::string& directory, const std::string& split) {
  return find_split_file(directory, split, ".csv").has_value();
}

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions& options,
             const ShouldStop&) {
  if (!options.columns.text.empty())
    fail("text-column: the model reads numbers: every column but the label is one");
  const bool labelled = is_labelled(split);
  Table table = read(*find_split_file(directory, split, ".csv"), options.columns, labelled);
  if (table.num_rows == 0) fail("{}: is empty, expected at least one example", table.labels.place);
  std::optional<Table> training;
  if (split != "train")
    if (const auto file = find_file(directory, "train.csv"))
      training = read(*file, options.columns, true);
  // A column in another place would be another feature to the model.
  if (training && training->features != table.features)
    fail("{}:1: the features are {}, expected those of the training split: {}", table.labels.place,
         quote_text(fmt::format("{}", fmt::join(table.features, ","))),
         quote_text(fmt::format("{}", fmt::join(training->features, ","))));

  Dataset dataset;
  dataset.examples.resize(table.num_rows);
  dataset.arrays =
      Arrays{{static_cast<std::int64_t>(table.features.size())}, std::move(table.values)};
  if (!labelled) return dataset;
  set_labels(dataset, table.labels, training ? &training->labels : nullptr, options.labels);
  return dataset;
}

const Register registration{DataKind{
    .name = "feature-tables",
    .summary = "a .csv with a column for the label and numbers in all others",
    .reads = Reads::Numbers,
    .looks_for = "SPLIT.csv, also with .zst or .gz",
    .has_split = has_split,
    .load = load,
    .has_columns = true,
}};

}  // namespace
}  // namespace lathe::data::feature_tables
