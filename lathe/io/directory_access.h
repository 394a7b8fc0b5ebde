#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "lathe/io/file_descriptor.h"
#include "lathe/io/mapped_file.h"

namespace lathe::io {

/// Opens for reading the regular file that untrusted text names, strictly beneath `directory`.
///
/// Every file name that comes out of a file goes through here. Absolute names, "..", backslashes,
/// NUL and symbolic links that lead outside are refused; links that stay inside are followed. The
/// kernel enforces it (openat2), so swapping a directory for a link meanwhile gains nothing.
FileDescriptor open_beneath(const std::filesystem::path& directory, std::string_view name);

/// The same for kernels without openat2: resolves the path, opens it, and checks where it ended up.
FileDescriptor open_beneath_by_resolving(const std::filesystem::path& directory,
                                         std::string_view name);

/// Maps the file that `open_beneath` opens.
std::shared_ptr<const MappedFile> map_beneath(const std::filesystem::path& directory,
                                              std::string_view name);

}  // namespace lathe::io
