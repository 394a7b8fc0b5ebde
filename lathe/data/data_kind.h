#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/core/registry.h"
#include "lathe/data/dataset.h"

namespace lathe::data {

/// A kind of data: how a split of it is recognized and read. Adding one is adding a file.
struct DataKind {
  std::string name;
  std::string summary;
  /// What it yields; among the kinds that yield what is asked for, the files decide.
  Reads reads = Reads::Text;
  bool has_images = false;  ///< among numbers
  /// What a directory holds for a split called SPLIT, for messages.
  std::string looks_for = {};
  /// Whether `spec` is a name of this kind's own and no directory; null where there are no names.
  bool (*is_name)(std::string_view spec) = nullptr;
  bool (*has_split)(const std::string& spec, const std::string& split) = nullptr;
  Dataset (*load)(const std::string& spec, const std::string& split, const DatasetOptions& options,
                  const ShouldStop& should_stop) = nullptr;
  /// Whether its rows have columns that options may choose.
  bool has_columns = false;
};

/// What the files of a split may be called, without their endings.
std::vector<std::string> file_names_of(const std::string& split);

/// Whether data is one file, whatever it is called: it has a training split and no other.
bool is_one_file(const std::filesystem::path& place);

/// What finds the first file of a split, by any of its names; fails where two names have one.
std::optional<std::filesystem::path> find_split_file(const std::filesystem::path& directory,
                                                     const std::string& split,
                                                     const std::string& ending);

/// Whether the examples of a split have labels: all but those of `unsup`.
inline bool is_labelled(std::string_view split) {
  return split != "unsup";
}

}  // namespace lathe::data
