#include "lathe/data/dataset.h"

#include <algorithm>
#include <filesystem>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/folds.h"
#include "lathe/data/validation_split.h"

namespace lathe::data {
namespace {

const auto& kinds() {
  return Registry<DataKind>::instance().all();
}

void check_split_name(std::string_view split) {
  const std::vector<std::string> splits = {"train", "test", "validation", "unsup"};
  if (std::find(splits.begin(), splits.end(), split) == splits.end())
    throw unknown_name("split", split, splits);
}

const DataKind* named_kind(std::string_view spec) {
  for (const auto& [name, kind] : kinds())
    if (kind.is_name && kind.is_name(spec)) return &kind;
  return nullptr;
}

std::vector<const DataKind*> kinds_with(const std::string& spec, const std::string& split) {
  std::vector<const DataKind*> found;
  for (const auto& [name, kind] : kinds())
    if (!kind.is_name && kind.has_split(spec, split)) found.push_back(&kind);
  return found;
}

std::string_view described(Reads reads) {
  return reads == Reads::Text ? "texts" : reads == Reads::Numbers ? "numbers" : "words with labels";
}

std::string what_is_looked_for(Reads reads, std::string_view split) {
  std::vector<std::string> all;
  for (const auto& [name, kind] : kinds()) {
    if (kind.is_name || kind.reads != reads) continue;
    std::string text = kind.looks_for;
    for (std::size_t at = 0; (at = text.find("SPLIT", at)) != text.npos; at += split.size())
      text.replace(at, 5, split);
    all.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

UserError parquet_error(const std::filesystem::path& file, const std::filesystem::path& other) {
  return UserError(fmt::format("{}: is a Parquet file, which is not read", file.string()),
                   fmt::format("convert it: python3 -c \"import pandas; "
                               "pandas.read_parquet('{}').to_json('{}', orient='records', "
                               "lines=True)\"",
                               file.string(), other.string()));
}

// Parquet needs a library larger than this program; whoever has such a file has pandas.
void refuse_parquet(const std::string& spec, const std::string& split) {
  namespace fs = std::filesystem;
  if (is_one_file(spec) && fs::path(spec).extension() == ".parquet")
    throw parquet_error(spec, fs::path(spec).replace_extension(".jsonl"));
  std::error_code error;
  for (const fs::path& folder : {fs::path(spec), fs::path(spec) / "data"})
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with(split) || entry->path().extension() != ".parquet") continue;
      throw parquet_error(entry->path(), fs::path(spec) / (split + ".jsonl"));
    }
}

// The one kind that reads this split; two would be a guess.
const DataKind& require_kind(const std::string& spec, const std::string& split, Reads reads) {
  if (const DataKind* const kind = named_kind(spec)) {
    if (kind->reads != reads)
      fail("{}: holds {}, but {} are needed", spec, described(kind->reads), described(reads));
    return *kind;
  }
  std::error_code error;
  if (!std::filesystem::exists(spec, error))
    fail("{}: no such dataset: expected \"reviews\", a directory or a table", spec);
  if (is_one_file(spec) && split != "train")
    throw UserError(
        fmt::format("{}: is one file and has the split \"train\" alone, not \"{}\"", spec, split),
        "put it in a directory, called train, beside one called test");
  const std::vector<const DataKind*> all = kinds_with(spec, split);
  std::vector<const DataKind*> found;
  for (const DataKind* const kind : all)
    if (kind->reads == reads) found.push_back(kind);
  if (found.size() > 1)
    fail("{}: holds split \"{}\" twice, as {} and as {}: expected one of them", spec, split,
         found[0]->name, found[1]->name);
  if (!found.empty()) return *found[0];
  if (!all.empty())
    throw UserError(
        fmt::format("{}: split \"{}\" holds {} ({}), but {} are needed: looked for {}", spec, split,
                    described(all[0]->reads), all[0]->name, described(reads),
                    what_is_looked_for(reads, split)),
        all[0]->reads == Reads::Words ? "the objective \"tokens\" learns labels of words" : "");
  refuse_parquet(spec, split);
  if (is_one_file(spec))
    fail("{}: is no table of {}: expected {}, also with .zst or .gz, or a directory", spec,
         described(reads),
         reads == Reads::Text      ? ".csv, .tsv, .jsonl or .txt"
         : reads == Reads::Numbers ? ".csv"
                                   : ".conll, .txt or .jsonl");
  fail("{}: has no split \"{}\": looked for {}", spec, split, what_is_looked_for(reads, split));
}

// Data that is no table has texts and labels where it has them.
void refuse_columns(const std::string& spec, const DataKind& kind, const DatasetOptions& options) {
  if (!options.columns.text.empty()) fail("text-column: {} ({}) has no columns", spec, kind.name);
  if (!options.columns.label.empty()) fail("label-column: {} ({}) has no columns", spec, kind.name);
  if (options.labels && *options.labels != LabelKind::Class)
    fail("{}: its labels ({}) are classes, but {} is asked for", spec, kind.name,
         problem_type(*options.labels));
}

void refuse_image_reading(const std::string& spec, const DataKind& kind,
                          const ImageReading& images) {
  if (!kind.has_images && images != ImageReading())
    fail("images {}: {} ({}) holds no images", to_text(images), spec, kind.name);
}

// One part of the data that a folded name cuts.
Dataset load_fold(const FoldedData& folded, std::string_view spec, std::string_view split,
                  const DatasetOptions& options, const ShouldStop& should_stop) {
  if (split != "train" && split != "test")
    fail("{}: has the splits train and test alone, not \"{}\"", spec, split);
  const bool has_train = has_split(folded.base, "train", options);
  const Dataset all = load_dataset(folded.base, has_train ? "train" : "test", options, should_stop);
  const std::vector<std::int64_t> folds =
      with_place(spec, [&] { return assign_folds(all.labels(), folded.count); });
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < folds.size(); ++i)
    if ((folds[i] == folded.fold) == (split == "test"))
      chosen.push_back(static_cast<std::int64_t>(i));
  return select(all, chosen);
}

}  // namespace

std::int64_t Arrays::size_of_one() const {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return size;
}

std::span<const float> Arrays::row(std::int64_t example) const {
  const std::int64_t size = size_of_one();
  return std::span(values).subspan(static_cast<std::size_t>(example * size),
                                   static_cast<std::size_t>(size));
}

std::int64_t Dataset::num_targets() const {
  return examples.empty() ? 0 : static_cast<std::int64_t>(targets.size() / examples.size());
}

Dataset::Texts Dataset::texts(std::size_t example, TextStore::Texts& buffer) const {
  const Example& found = examples[example];
  if (found.stored < 0) return {found.text, found.second};
  buffer = store->read(found.stored);
  return {buffer.text, buffer.second};
}

std::vector<std::int32_t> Dataset::labels() const {
  std::vector<std::int32_t> all;
  all.reserve(examples.size());
  for (const Example& example : examples) all.push_back(example.label);
  return all;
}

Dataset load_dataset(std::string_view spec, std::string_view split, const DatasetOptions& options,
                     const ShouldStop& should_stop) {
  check_split_name(split);
  if (const std::optional<FoldedData> folded = parse_folds(spec))
    return load_fold(*folded, spec, split, options, should_stop);
  const std::string place(spec), name(split);
  const DataKind& kind = require_kind(place, name, options.reads);
  if (!kind.has_columns) refuse_columns(place, kind, options);
  refuse_image_reading(place, kind, options.images);
  Dataset dataset = kind.load(place, name, options, should_stop);
  check(!dataset.arrays ||
            static_cast<std::int64_t>(dataset.arrays->values.size()) ==
                static_cast<std::int64_t>(dataset.examples.size()) * dataset.arrays->size_of_one(),
        "one row of numbers for each example");
  check(dataset.examples.empty() || dataset.targets.size() % dataset.examples.size() == 0,
        "as many targets for each example");
  return dataset;
}

Dataset load_dataset(std::string_view spec, std::string_view split, const ShouldStop& should_stop) {
  return load_dataset(spec, split, DatasetOptions{}, should_stop);
}

bool is_directory_of_data(std::string_view spec) {
  if (const std::optional<FoldedData> folded = parse_folds(spec))
    return is_directory_of_data(folded->base);
  return named_kind(spec) == nullptr;
}

bool has_split(std::string_view spec, std::string_view split, const DatasetOptions& options) {
  check_split_name(split);
  if (const std::optional<FoldedData> folded = parse_folds(spec))
    return (split == "train" || split == "test") &&
           (has_split(folded->base, "train", options) || has_split(folded->base, "test", options));
  const std::string place(spec), name(split);
  if (const DataKind* const kind = named_kind(spec))
    return kind->reads == options.reads && kind->has_split(place, name);
  const std::vector<const DataKind*> found = kinds_with(place, name);
  return std::any_of(found.begin(), found.end(),
                     [&](const DataKind* kind) { return kind->reads == options.reads; });
}

}  // namespace lathe::data
