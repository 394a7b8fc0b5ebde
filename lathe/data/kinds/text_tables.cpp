// SPLIT.tsv, SPLIT.csv and SPLIT.jsonl: a text and a label in each row.
#include <algorithm>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/find_reader.h"
#include "lathe/data/text_contents.h"
#include "lathe/data/text_memory.h"
#include "lathe/data/written_labels.h"

namespace lathe::data::text_tables {
namespace {

// Adding a format is adding its file and a line here. The first that is there counts.
constexpr DatasetReader kReaders[] = {
    {".tsv", read_tsv},
    {".csv", read_csv},
    {".jsonl", read_jsonl},
};

using Found = FoundReader<DatasetReader>;

std::optional<Found> find(const std::string& directory, const std::string& split) {
  return find_reader(kReaders, directory, split);
}

// Reads a file's labels, and its examples where there is a dataset to take them.
class TableReader {
 public:
  TableReader(const DatasetOptions& options, bool labelled)
      : options_(options), labelled_(labelled) {}

  WrittenLabels read(const Found& found, Dataset* dataset) {
    written_.place = found.file.string();
    const TextContents contents(found.file);
    try {
      found.reader->read(contents.view(), options_.columns, labelled_, [&](Row&& row) {
        if (labelled_) add_label(row);
        if (dataset != nullptr) add_example(std::move(row), *dataset);
      });
    } catch (const UserError& wrong) {
      // The message begins with the line number, as in "train.tsv:12: has no tab".
      throw UserError(fmt::format("{}:{}", written_.place, wrong.message()), wrong.hint());
    }
    return std::move(written_);
  }

 private:
  void add_label(Row& row) {
    if (!written_.labels.empty() && row.has_label_list != written_.are_lists && !asks_sets())
      fail("{}: its label is {}, unlike those before it", row.line,
           row.has_label_list ? "a list" : "no list");
    if (asks_sets() && !row.has_label_list) row.label = split_list(row.label);
    written_.are_lists = row.has_label_list || asks_sets();
    if (row.has_label_list && options_.columns.label.size() > 1)
      written_.list_names = options_.columns.label;
    written_.labels.push_back(std::move(row.label));
    written_.lines.push_back(row.line);
  }

  bool asks_sets() const { return options_.labels == LabelKind::Set; }

  // "a, b" in one column.
  std::string split_list(const std::string& text) const {
    const std::string& separator = options_.columns.separator;
    if (separator.empty()) fail("label-separator: is empty, expected one or more characters");
    std::string list;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(separator, begin), text.size());
      std::size_t first = begin, last = end;
      while (first < last && text[first] == ' ') ++first;
      while (last > first && text[last - 1] == ' ') --last;
      if (first < last) {
        if (!list.empty()) list += kBetweenLabels;
        list.append(text, first, last - first);
      }
      begin = end + separator.size();
    }
    return list;
  }

  void add_example(Row&& row, Dataset& dataset) {
    Example example{.text = {}, .label = kNoLabel};
    const auto size = static_cast<std::int64_t>(row.text.size() + row.second.size());
    if (num_bytes_ + size > most_bytes_) {
      if (!dataset.store) dataset.store = std::make_shared<TextStore>();
      example.stored = dataset.store->add(row.text, row.second);
    } else {
      num_bytes_ += size;
      example.text = std::move(row.text);
      example.second = std::move(row.second);
    }
    dataset.examples.push_back(std::move(example));
    dataset.has_pairs = row.is_pair;
  }

  const DatasetOptions& options_;
  bool labelled_;
  WrittenLabels written_;
  const std::int64_t most_bytes_ = std::min(options_.most_bytes, text_memory());
  std::int64_t num_bytes_ = 0;
};

bool has_split(const std::string& directory, const std::string& split) {
  return find(directory, split).has_value();
}

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions& options,
             const ShouldStop&) {
  const bool labelled = is_labelled(split);
  Dataset dataset;
  const WrittenLabels written =
      TableReader(options, labelled).read(*find(directory, split), &dataset);
  if (dataset.examples.empty()) fail("{}: is empty, expected at least one example", written.place);
  if (!labelled) return dataset;
  std::optional<WrittenLabels> training;
  if (split != "train")
    if (const auto found = find(directory, "train"))
      training = TableReader(options, true).read(*found, nullptr);
  set_labels(dataset, written, training ? &*training : nullptr, options.labels);
  return dataset;
}

const Register registration{DataKind{
    .name = "text-tables",
    .summary = "a text, or a pair of them, and a label in each row of a .tsv, .csv or .jsonl",
    .reads = Reads::Text,
    .looks_for = "SPLIT.tsv, SPLIT.csv, SPLIT.jsonl, each also with .zst or .gz",
    .has_split = has_split,
    .load = load,
    .has_columns = true,
}};

}  // namespace
}  // namespace lathe::data::text_tables
