// SPLIT/neg and SPLIT/pos: a text in each file.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/text_file.h"

namespace lathe::data::review_folders {
namespace {

// Files are named ID_RATING.txt. Ordering by the number keeps the order of the published archive
// whatever order the file system lists them in.
std::vector<std::filesystem::path> text_files(const std::filesystem::path& directory) {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> numbered;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() != ".txt") continue;
    const std::string name = at->path().filename().string();
    std::int64_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    numbered.emplace_back(number, at->path());
  }
  if (error) fail("{}: cannot be listed: {}", directory.string(), error.message());
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::filesystem::path> files;
  files.reserve(numbered.size());
  for (auto& [number, path] : numbered) files.push_back(std::move(path));
  return files;
}

// The published archive keeps its unlabelled texts beside the labelled training texts.
std::filesystem::path folder_of(const std::string& directory, const std::string& split) {
  const std::filesystem::path place(directory);
  return is_labelled(split) ? place / split : place / "train" / "unsup";
}

bool has_split(const std::string& directory, const std::string& split) {
  std::error_code error;
  const std::filesystem::path folder = folder_of(directory, split);
  return std::filesystem::is_directory(is_labelled(split) ? folder / "pos" : folder, error);
}

void add_texts(const std::filesystem::path& folder, std::int32_t label, Dataset& dataset) {
  const auto files = text_files(folder);
  if (files.empty()) fail("{}: has no .txt files", folder.string());
  for (const auto& file : files) dataset.examples.push_back({read_text_file(file), label});
}

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions&,
             const ShouldStop&) {
  const std::filesystem::path folder = folder_of(directory, split);
  Dataset dataset;
  if (!is_labelled(split)) {
    add_texts(folder, kNoLabel, dataset);
    return dataset;
  }
  dataset.label_names = {"neg", "pos"};
  for (std::int32_t label = 0; label < dataset.num_labels(); ++label)
    add_texts(folder / dataset.label_names[static_cast<std::size_t>(label)], label, dataset);
  return dataset;
}

const Register registration{DataKind{
    .name = "review-folders",
    .summary = "a text in each file of the folders neg and pos, as IMDb is published",
    .reads = Reads::Text,
    .looks_for = "the folders SPLIT/neg and SPLIT/pos of .txt files",
    .has_split = has_split,
    .load = load,
}};

}  // namespace
}  // namespace lathe::data::review_folders
