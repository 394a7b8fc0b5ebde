#include "lathe/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>

#include "lathe/core/error.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

fs::path directory_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

void refuse_special_target(const fs::path& target) {
  if (!target.has_filename()) fail("{}: is not a file name", target.string());
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    fail("{}: cannot write: exists and is not a regular file", target.string());
}

}  // namespace

AtomicFile::AtomicFile(fs::path target) : target_(std::move(target)) {
  refuse_special_target(target_);
  std::random_device random;
  // A fresh name each time: another process may be writing the same target.
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = directory_of(target_) /
                 fmt::format(".{}.{:08x}.tmp", target_.filename().string(), random());
    file_ = FileDescriptor(
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (file_.is_open()) return;
    if (errno != EEXIST) fail_with_errno(target_, "create", errno);
  }
  fail_with_errno(target_, "create", EEXIST);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  check(file_.is_open(), "writes to come before commit");
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno(target_, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  check(file_.is_open(), "one commit");
  // Never tried twice: after a failed fsync the kernel may have dropped the very pages it reports
  // as clean the next time.
  if (::fsync(file_.number()) != 0) fail_with_errno(target_, "write to disk", errno);
  if (const int error_number = file_.close(); error_number != 0)
    fail_with_errno(target_, "write to disk", error_number);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail_with_errno(target_, "replace", errno);
  temporary_.clear();
  sync_directory(directory_of(target_));
}

void write_atomically(const fs::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

void sync_directory(const fs::path& directory) {
  const FileDescriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) fail_with_errno(directory, "open", errno);
  // Some file systems have nothing to sync for a directory and say EINVAL.
  if (::fsync(opened.number()) != 0 && errno != EINVAL)
    fail_with_errno(directory, "write to disk", errno);
}

}  // namespace lathe::io
