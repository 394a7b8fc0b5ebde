#include "lathe/io/directory_access.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNameLength = 4096;
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

[[noreturn]] void refuse(const fs::path& directory, std::string_view name, std::string_view why) {
  fail("{}: file name {} {}", directory.string(), quote_text(name), why);
}

[[noreturn]] void refuse_outside(const fs::path& directory, std::string_view name) {
  throw UserError(fmt::format("{}: file name {} leads outside the directory", directory.string(),
                              quote_text(name)),
                  "if the link is meant to be there, copy the directory with cp -rL first");
}

// What can be judged from the text alone, so that both ways of opening refuse the same names.
void check_name(const fs::path& directory, std::string_view name) {
  if (name.empty()) refuse(directory, name, "is empty");
  if (name.size() > kMaxNameLength) refuse(directory, name, "is longer than 4096 bytes");
  if (name.find('\0') != name.npos) refuse(directory, name, "contains a NUL byte");
  if (name.find('\\') != name.npos) refuse(directory, name, "contains a backslash");
  if (name.front() == '/')
    refuse(directory, name, "is absolute, expected one inside the directory");
  for (const fs::path& part : fs::path(name))
    if (part == "..") refuse(directory, name, "contains \"..\"");
}

FileDescriptor open_directory(const fs::path& directory) {
  FileDescriptor opened(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) fail_with_errno(directory, "open", errno);
  return opened;
}

bool is_beneath(const fs::path& directory, const fs::path& path) {
  const auto [end, ignored] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return end == directory.end();
}

}  // namespace

FileDescriptor open_beneath(const fs::path& directory, std::string_view name) {
  check_name(directory, name);
  const FileDescriptor root = open_directory(directory);
  const std::string text(name);
  open_how how{};
  how.flags = static_cast<unsigned>(kOpenFlags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  int error_number = EAGAIN;
  // The kernel answers EAGAIN when something was renamed while it looked.
  for (int attempt = 0; attempt < 16 && error_number == EAGAIN; ++attempt) {
    FileDescriptor file(
        static_cast<int>(::syscall(SYS_openat2, root.number(), text.c_str(), &how, sizeof how)));
    if (file.is_open()) {
      regular_file_size(file, directory / text);
      return file;
    }
    error_number = errno;
  }
  if (error_number == EXDEV) refuse_outside(directory, name);
  // Older kernels lack the call, and older sandboxes answer EPERM to calls they do not know.
  if (error_number == ENOSYS || error_number == EPERM)
    return open_beneath_by_resolving(directory, name);
  fail_with_errno(directory / text, "open", error_number);
}

FileDescriptor open_beneath_by_resolving(const fs::path& directory, std::string_view name) {
  check_name(directory, name);
  std::error_code error;
  const fs::path root = fs::canonical(directory, error);
  if (error) fail_with_errno(directory, "open", error.value());
  const fs::path wanted = directory / name;
  const fs::path resolved = fs::canonical(wanted, error);
  if (error) fail_with_errno(wanted, "open", error.value());
  if (!is_beneath(root, resolved)) refuse_outside(directory, name);

  FileDescriptor file(::open(resolved.c_str(), kOpenFlags | O_NOFOLLOW));
  if (!file.is_open()) fail_with_errno(wanted, "open", errno);
  // A parent may have been swapped for a link since it was resolved, so ask where the file really
  // is.
  const fs::path actual = fs::read_symlink("/proc/self/fd/" + std::to_string(file.number()), error);
  if (!error && !is_beneath(root, actual)) refuse_outside(directory, name);
  regular_file_size(file, wanted);
  return file;
}

std::shared_ptr<const MappedFile> map_beneath(const fs::path& directory, std::string_view name) {
  return MappedFile::map(open_beneath(directory, name), directory / name);
}

}  // namespace lathe::io
