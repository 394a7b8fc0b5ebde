#include "lathe/data/text_contents.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"

namespace lathe::data {
TextContents::TextContents(const std::filesystem::path& path) {
  std::error_code error;
  // A pipe cannot be mapped, and what is compressed must be unpacked.
  if (path.extension() == ".zst" || path.extension() == ".gz" ||
      !std::filesystem::is_regular_file(path, error)) {
    text_ = read_text_file(path);
    view_ = text_;
    return;
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  struct stat status {};
  const bool is_known = ::fstat(file, &status) == 0;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const mapped =
      is_known && size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  const int reason = errno;
  ::close(file);
  if (!is_known || mapped == MAP_FAILED)
    fail("{}: cannot be read: {}", path.string(), std::strerror(reason));
  if (mapped == nullptr) return;  // empty
  mapped_ = mapped;
  view_ = {static_cast<const char*>(mapped), size};
  ::madvise(mapped_, size, MADV_SEQUENTIAL);
}

TextContents::~TextContents() {
  if (mapped_ != nullptr) ::munmap(mapped_, view_.size());
}

}  // namespace lathe::data
