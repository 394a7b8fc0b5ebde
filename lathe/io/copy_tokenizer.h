#pragma once

#include <filesystem>

namespace lathe::io {

/// Copies the files of a model directory's tokenizer, as many as it has, into another directory,
/// compressed or not whatever they were.
///
/// Only regular files that lie in the directory are copied. A link is refused: a model that
/// somebody else made could point it at any file of the user's, who would then publish it.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to,
                    bool is_compressed = false);

}  // namespace lathe::io
