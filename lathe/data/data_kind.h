#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
  /// What a directory holds for a split called SPLIT, for messages.
  std::string looks_for = {};
  /// Whether `spec` is a name of this kind's own and no directory; null where there are no names.
  bool (*is_name)(std::string_view spec) = nullptr;
  bool (*has_split)(const std::string& spec, const std::string& split) = nullptr;
  Dataset (*load)(const std::string& spec, const std::string& split,
                  const ShouldStop& should_stop) = nullptr;
};

/// Whether the examples of a split have labels: all but those of `unsup`.
inline bool is_labelled(std::string_view split) {
  return split != "unsup";
}

}  // namespace lathe::data
