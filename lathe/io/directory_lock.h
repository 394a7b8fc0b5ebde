#pragma once

#include <filesystem>

#include "lathe/io/file_descriptor.h"

namespace lathe::io {

/// Keeps other processes from working in the same directory, as long as it lives. The system lets
/// go of it when the process ends, however that happens, and nothing is left in the directory.
class DirectoryLock {
 public:
  /// Fails when another holds it. Where a file system cannot lock, nothing is held.
  explicit DirectoryLock(const std::filesystem::path& directory);

 private:
  FileDescriptor directory_;
};

}  // namespace lathe::io
