#pragma once

#include <filesystem>
#include <utility>

namespace lathe::io {

/// Keeps other processes from working in the same directory, as long as it lives. The system lets
/// go of it when the process ends, however that happens, and nothing is left in the directory.
class DirectoryLock {
 public:
  /// Fails when another holds it. Where a file system cannot lock, nothing is held.
  explicit DirectoryLock(const std::filesystem::path& directory);
  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~DirectoryLock();

 private:
  int file_ = -1;
};

}  // namespace lathe::io
