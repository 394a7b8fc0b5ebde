#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

namespace lathe::io {

/// An open file of the operating system, closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { close(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// Closes now; returns 0 or the errno of a failed close, which may report a lost write.
  int close() noexcept;

 private:
  int number_ = -1;
};

/// Opens a regular file for reading. A FIFO, device, socket or directory is refused without
/// waiting.
FileDescriptor open_regular_file(const std::filesystem::path& path);

/// The size in bytes of an open file that must be a regular one; `path` is what errors call it.
std::size_t regular_file_size(const FileDescriptor& file, const std::filesystem::path& path);

/// Throws UserError "PATH: cannot DO: reason" for an errno.
[[noreturn]] void fail_with_errno(const std::filesystem::path& path, std::string_view what,
                                  int error_number);

}  // namespace lathe::io
