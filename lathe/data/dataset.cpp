#include "lathe/data/dataset.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "lathe/core/error.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/reviews.h"
#include "lathe/data/text_file.h"

namespace lathe::data {
namespace {

// Adding a format is adding its file and a line here.
constexpr DatasetReader kReaders[] = {
    {".tsv", false, read_tsv},
    {".csv", true, read_csv},
    {".jsonl", true, read_jsonl},
};

// More labels than this are a file that was misread, such as one of ratings or ids.
constexpr std::int32_t kMostLabels = 10'000;

struct Rows {
  std::string place;  // the file or folder they came from
  bool names_labels = false;
  std::vector<Row> rows;
};

std::optional<Rows> find_rows(const std::filesystem::path& directory, const std::string& split,
                              bool labelled) {
  std::error_code error;
  for (const DatasetReader& reader : kReaders) {
    for (const char* const suffix : {"", ".zst"}) {
      const std::filesystem::path file =
          directory / (split + std::string(reader.extension) + suffix);
      if (!std::filesystem::exists(file, error)) continue;
      const std::string contents = read_text_file(file);
      try {
        return Rows{file.string(), reader.names_labels, reader.read(contents, labelled)};
      } catch (const UserError& wrong) {
        // The message begins with the line number, as in "train.tsv:12: has no tab".
        throw UserError(fmt::format("{}:{}", file.string(), wrong.message()), wrong.hint());
      }
    }
  }
  // The published archive keeps its unlabelled texts beside the labelled training texts.
  const std::filesystem::path folder = labelled ? directory / split : directory / "train" / "unsup";
  if (std::filesystem::is_directory(labelled ? folder / "pos" : folder, error))
    return Rows{folder.string(), true, read_review_folders(folder, labelled)};
  return std::nullopt;
}

Rows require_rows(const std::filesystem::path& directory, const std::string& split) {
  const bool labelled = split != "unsup";
  std::optional<Rows> found = find_rows(directory, split, labelled);
  if (!found) {
    std::vector<std::string> names;
    for (const DatasetReader& reader : kReaders)
      names.push_back(split + std::string(reader.extension));
    fail("{}: has no split \"{}\": looked for {}, each also with .zst, and for the folder {}",
         directory.string(), split, fmt::join(names, ", "),
         labelled ? split + "/pos" : "train/unsup");
  }
  if (found->rows.empty()) fail("{}: is empty, expected at least one example", found->place);
  return std::move(*found);
}

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The names of text labels in sorted order; empty when the labels are numbers. The first row
// decides, so that one stray word among numbers is an error and not a new kind of label.
std::vector<std::string> names_of_labels(const Rows& rows) {
  if (!rows.names_labels || as_integer(rows.rows.front().label)) return {};
  std::set<std::string> names;
  for (const Row& row : rows.rows) names.insert(row.label);
  return {names.begin(), names.end()};
}

void number_labels(Rows& rows, Dataset& dataset) {
  std::vector<bool> seen;
  for (Row& row : rows.rows) {
    const std::optional<std::int64_t> label = as_integer(row.label);
    if (!label)
      fail("{}:{}: label is \"{}\", expected an integer", rows.place, row.line, row.label);
    if (*label < 0 || *label >= kMostLabels)
      fail("{}:{}: label is {}, expected 0 to {}", rows.place, row.line, *label, kMostLabels - 1);
    if (static_cast<std::size_t>(*label) >= seen.size())
      seen.resize(static_cast<std::size_t>(*label) + 1);
    seen[static_cast<std::size_t>(*label)] = true;
    dataset.examples.push_back({std::move(row.text), static_cast<std::int32_t>(*label)});
  }
  for (std::size_t label = 0; label < seen.size(); ++label)
    dataset.label_names.push_back(std::to_string(label));
}

void check_every_label_occurs(const Rows& rows, const Dataset& dataset) {
  std::vector<bool> seen(dataset.label_names.size());
  for (const Example& example : dataset.examples)
    seen[static_cast<std::size_t>(example.label)] = true;
  for (std::size_t label = 0; label < seen.size(); ++label)
    if (!seen[label])
      fail("{}: labels go up to {}, but none is {}: expected 0 to n-1 without gaps", rows.place,
           seen.size() - 1, label);
}

void name_labels(Rows& rows, std::vector<std::string> names, Dataset& dataset) {
  if (names.size() > static_cast<std::size_t>(kMostLabels))
    fail("{}: has {} different labels, expected at most {}", rows.place, names.size(), kMostLabels);
  for (Row& row : rows.rows) {
    const auto found = std::lower_bound(names.begin(), names.end(), row.label);
    if (found == names.end() || *found != row.label)
      fail("{}:{}: label \"{}\" does not occur in the training split, whose labels are {}",
           rows.place, row.line, row.label, fmt::join(names, ", "));
    dataset.examples.push_back(
        {std::move(row.text), static_cast<std::int32_t>(found - names.begin())});
  }
  dataset.label_names = std::move(names);
}

Dataset load_directory(const std::filesystem::path& directory, const std::string& split) {
  Rows rows = require_rows(directory, split);
  Dataset dataset;
  dataset.examples.reserve(rows.rows.size());
  if (split == "unsup") {
    for (Row& row : rows.rows) dataset.examples.push_back({std::move(row.text), kNoLabel});
    return dataset;
  }
  std::vector<std::string> names = names_of_labels(rows);
  if (names.empty()) {
    number_labels(rows, dataset);
    if (split == "train") check_every_label_occurs(rows, dataset);
    return dataset;
  }
  // This split may lack a name that the training split has.
  if (split != "train")
    if (const std::optional<Rows> train = find_rows(directory, "train", true);
        train && !train->rows.empty())
      names = names_of_labels(*train);
  name_labels(rows, std::move(names), dataset);
  return dataset;
}

}  // namespace

std::vector<std::int32_t> Dataset::labels() const {
  std::vector<std::int32_t> all;
  all.reserve(examples.size());
  for (const Example& example : examples) all.push_back(example.label);
  return all;
}

Dataset load_dataset(std::string_view spec, std::string_view split, const ShouldStop& should_stop) {
  const std::vector<std::string> splits = {"train", "test", "validation", "unsup"};
  if (std::find(splits.begin(), splits.end(), split) == splits.end())
    throw unknown_name("split", split, splits);
  if (spec == "reviews" || spec.starts_with("reviews:"))
    return make_reviews(parse_review_options(spec), split, should_stop);
  const std::filesystem::path directory(spec);
  std::error_code error;
  if (!std::filesystem::exists(directory, error))
    fail("{}: no such dataset: expected \"reviews\" or a directory", spec);
  if (!std::filesystem::is_directory(directory, error))
    fail("{}: is a file, expected a directory with train and test in it", spec);
  return load_directory(directory, std::string(split));
}

}  // namespace lathe::data
