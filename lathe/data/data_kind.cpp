#include "lathe/data/data_kind.h"

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"

namespace lathe::data {

bool is_one_file(const std::filesystem::path& place) {
  std::error_code error;
  return std::filesystem::is_regular_file(place, error);
}

std::vector<std::string> file_names_of(const std::string& split) {
  if (split == "validation") return {"validation", "valid", "val", "dev"};
  return {split};
}

std::optional<std::filesystem::path> find_split_file(const std::filesystem::path& directory,
                                                     const std::string& split,
                                                     const std::string& ending) {
  std::optional<std::filesystem::path> found;
  if (is_one_file(directory)) {
    const std::string name = directory.filename().string();
    const bool is_read =
        split == "train" && (name.ends_with(ending) || name.ends_with(ending + ".zst") ||
                             name.ends_with(ending + ".gz"));
    if (is_read) found = directory;
    return found;
  }
  for (const std::string& name : file_names_of(split)) {
    const auto file = find_file(directory, name + ending);
    if (found && file)
      fail("{}: holds {} and {}: expected one {} split", directory.string(),
           found->filename().string(), file->filename().string(), split);
    if (file) found = file;
  }
  return found;
}

}  // namespace lathe::data
