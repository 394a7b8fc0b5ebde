#include "lathe/io/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "lathe/core/error.h"

namespace lathe::io {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : directory_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (directory_.is_open() && ::flock(directory_.number(), LOCK_EX | LOCK_NB) != 0 &&
      errno == EWOULDBLOCK)
    fail("{}: another process is at work there", directory.string());
}

}  // namespace lathe::io
