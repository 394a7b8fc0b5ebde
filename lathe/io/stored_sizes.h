#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lathe/core/dtype.h"

namespace lathe::io {

/// What a tensor takes in a model's files, and what it would take as it is.
struct StoredSize {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::int64_t> dims;
  std::int64_t bytes = 0;         ///< of the tensor itself
  std::int64_t stored_bytes = 0;  ///< in the file
  std::string form;               ///< in words: "as it is", "under w.mask, coded"
};

/// The tensors of a model directory by name.
std::vector<StoredSize> stored_sizes(const std::filesystem::path& directory);

}  // namespace lathe::io
