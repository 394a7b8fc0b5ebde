#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "lathe/io/file_descriptor.h"

namespace lathe::io {

/// A file that appears under its name whole or not at all.
///
/// Bytes go to a temporary file beside the target; `commit` makes them durable and renames it over
/// the target. Without `commit`, and on any error, the temporary is removed and the target
/// untouched.
class AtomicFile {
 public:
  /// Creates the temporary. A target that exists and is no regular file is refused, because a
  /// rename would replace a device or pipe by a file.
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Syncs the bytes, renames, and syncs the directory.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
};

/// Replaces or creates the file `target` with `text`, whole or not at all.
void write_atomically(const std::filesystem::path& target, std::string_view text);

/// Makes the names in a directory durable: a rename or unlink may be lost in a crash until then.
void sync_directory(const std::filesystem::path& directory);

}  // namespace lathe::io
