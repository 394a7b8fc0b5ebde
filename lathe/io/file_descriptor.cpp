#include "lathe/io/file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <string>
#include <system_error>

#include "lathe/core/error.h"

namespace lathe::io {
namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

int FileDescriptor::close() noexcept {
  const int number = std::exchange(number_, -1);
  // EINTR leaves the descriptor closed on Linux, so closing again could hit somebody else's file.
  if (number < 0 || ::close(number) == 0 || errno == EINTR) return 0;
  return errno;
}

FileDescriptor open_regular_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a FIFO waits for a writer that may never come.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    const int error_number = errno;
    if (error_number == ENXIO) fail("{}: is a socket or device, not a regular file", path.string());
    fail_with_errno(path, "open", error_number);
  }
  regular_file_size(file, path);
  return file;
}

std::size_t regular_file_size(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_with_errno(path, "examine", errno);
  if (!S_ISREG(status.st_mode))
    fail("{}: is {}, not a regular file", path.string(), kind_of(status.st_mode));
  return static_cast<std::size_t>(status.st_size);
}

void fail_with_errno(const std::filesystem::path& path, std::string_view what, int error_number) {
  std::string reason = std::generic_category().message(error_number);
  if (!reason.empty())
    reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  fail("{}: cannot {}: {}", path.string(), what, reason);
}

}  // namespace lathe::io
