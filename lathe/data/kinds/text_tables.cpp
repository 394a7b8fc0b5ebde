// SPLIT.tsv, SPLIT.csv and SPLIT.jsonl: a text and a label in each row.
#include <filesystem>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/text_file.h"
#include "lathe/data/written_labels.h"

namespace lathe::data::text_tables {
namespace {

// Adding a format is adding its file and a line here. The first that is there counts.
constexpr DatasetReader kReaders[] = {
    {".tsv", false, read_tsv},
    {".csv", true, read_csv},
    {".jsonl", true, read_jsonl},
};

struct Table {
  std::string place;
  bool names_labels = false;
  std::vector<Row> rows;
};

struct Found {
  const DatasetReader* reader;
  std::filesystem::path file;
};

std::optional<Found> find(const std::string& directory, const std::string& split) {
  for (const DatasetReader& reader : kReaders)
    if (const auto file = find_file(directory, split + std::string(reader.extension)))
      return Found{&reader, *file};
  return std::nullopt;
}

Table read(const Found& found, bool labelled) {
  const std::string place = found.file.string();
  const std::string contents = read_text_file(found.file);
  try {
    return {place, found.reader->names_labels, found.reader->read(contents, labelled)};
  } catch (const UserError& wrong) {
    // The message begins with the line number, as in "train.tsv:12: has no tab".
    throw UserError(fmt::format("{}:{}", place, wrong.message()), wrong.hint());
  }
}

WrittenLabels labels_of(const Table& table, bool is_training) {
  WrittenLabels written{
      .place = table.place, .may_be_names = table.names_labels, .is_training = is_training};
  for (const Row& row : table.rows) {
    written.labels.push_back(row.label);
    written.lines.push_back(row.line);
  }
  return written;
}

bool has_split(const std::string& directory, const std::string& split) {
  return find(directory, split).has_value();
}

Dataset load(const std::string& directory, const std::string& split, const ShouldStop&) {
  const bool labelled = is_labelled(split);
  Table table = read(*find(directory, split), labelled);
  if (table.rows.empty()) fail("{}: is empty, expected at least one example", table.place);
  Dataset dataset;
  for (Row& row : table.rows) dataset.examples.push_back({std::move(row.text), kNoLabel});
  if (!labelled) return dataset;
  std::optional<WrittenLabels> training;
  if (split != "train")
    if (const auto found = find(directory, "train")) training = labels_of(read(*found, true), true);
  NumberedLabels labels =
      number_labels(labels_of(table, split == "train"), training ? &*training : nullptr);
  for (std::size_t i = 0; i < dataset.examples.size(); ++i)
    dataset.examples[i].label = labels.numbers[i];
  dataset.label_names = std::move(labels.names);
  return dataset;
}

const Register registration{DataKind{
    .name = "text-tables",
    .summary = "a text and a label in each row of a .tsv, .csv or .jsonl",
    .reads = Reads::Text,
    .looks_for = "SPLIT.tsv, SPLIT.csv, SPLIT.jsonl, each also with .zst or .gz",
    .has_split = has_split,
    .load = load,
}};

}  // namespace
}  // namespace lathe::data::text_tables
