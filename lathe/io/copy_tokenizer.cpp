#include "lathe/io/copy_tokenizer.h"

#include <fcntl.h>

#include <cerrno>

#include "lathe/core/error.h"
#include "lathe/data/tokenizer.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/file_descriptor.h"
#include "lathe/io/mapped_file.h"

namespace lathe::io {

void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  const FileDescriptor directory(::open(from.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) fail_with_errno(from, "open", errno);
  for (const std::string& name : data::all_tokenizer_files()) {
    const std::filesystem::path source = from / name;
    const FileDescriptor file(::openat(directory.number(), name.c_str(),
                                       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.is_open()) {
      if (errno == ENOENT) continue;
      if (errno == ELOOP)
        throw UserError(
            fmt::format("{}: is a link, which is not copied along with a model", source.string()),
            "if it is meant to be there, copy the directory with cp -rL first");
      fail_with_errno(source, "open", errno);
    }
    regular_file_size(file, source);
    write_atomically(to / name, MappedFile::map(file, source)->text());
  }
}

}  // namespace lathe::io
