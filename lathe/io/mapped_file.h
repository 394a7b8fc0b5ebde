#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "lathe/io/file_descriptor.h"

namespace lathe::io {

/// The bytes of a regular file, mapped read-only and read from disk as they are touched.
///
/// Shared, because tensors that view the bytes outlive whoever opened the file. Replacing the file
/// by rename leaves the mapping valid; shortening it in place does not, and our writers never do
/// that.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  /// Maps a file that is already open; `path` is what errors call it.
  static std::shared_ptr<const MappedFile> map(const FileDescriptor& file,
                                               std::filesystem::path path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::filesystem::path& path() const { return path_; }
  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size);

  std::filesystem::path path_;
  const std::byte* data_;
  std::size_t size_;
};

}  // namespace lathe::io
