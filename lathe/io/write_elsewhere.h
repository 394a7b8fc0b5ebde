#pragma once

#include <string_view>

#include "lathe/io/model.h"

namespace lathe::io {

/// Writes a directory as `write_huggingface` does, with the names that another library
/// (`torchvision`) gives the tensors; fails where it has none for the family.
void write_elsewhere(const std::filesystem::path& target, const Model& model,
                     std::string_view library, std::int64_t max_shard_bytes = 50'000'000'000);

}  // namespace lathe::io
