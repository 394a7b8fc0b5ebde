#include <algorithm>
#include <charconv>

#include "lathe/core/error.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/text_file.h"

namespace lathe::data {
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

}  // namespace

std::vector<Row> read_review_folders(const std::filesystem::path& directory, bool labelled) {
  std::vector<Row> rows;
  const std::vector<std::string> labels =
      labelled ? std::vector<std::string>{"neg", "pos"} : std::vector<std::string>{""};
  for (const std::string& label : labels) {
    const std::filesystem::path folder = labelled ? directory / label : directory;
    const auto files = text_files(folder);
    if (files.empty()) fail("{}: has no .txt files", folder.string());
    for (const auto& file : files) rows.push_back({read_text_file(file), label, 1});
  }
  return rows;
}

}  // namespace lathe::data
