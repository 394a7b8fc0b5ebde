#include "lathe/io/copy_tokenizer.h"

#include <fcntl.h>

#include <cerrno>

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"
#include "lathe/data/tokenizer.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_text.h"
#include "lathe/io/file_descriptor.h"
#include "lathe/io/mapped_file.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

// The text of a file of a directory, or null where there is none.
std::shared_ptr<const MappedFile> map_own_file(const FileDescriptor& directory,
                                               const fs::path& source) {
  const FileDescriptor file(::openat(directory.number(), source.filename().c_str(),
                                     O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    if (errno == ENOENT) return nullptr;
    if (errno == ELOOP)
      throw UserError(
          fmt::format("{}: is a link, which is not copied along with a model", source.string()),
          "if it is meant to be there, copy the directory with cp -rL first");
    fail_with_errno(source, "open", errno);
  }
  regular_file_size(file, source);
  return MappedFile::map(file, source);
}

}  // namespace

void copy_tokenizer(const fs::path& from, const fs::path& to, bool is_compressed) {
  const FileDescriptor directory(::open(from.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) fail_with_errno(from, "open", errno);
  for (const std::string& name : data::all_tokenizer_files()) {
    if (const auto plain = map_own_file(directory, from / name)) {
      write_text(to, name, plain->text(), is_compressed);
      continue;
    }
    const fs::path source = from / (name + kCompressedEnding);
    if (const auto compressed = map_own_file(directory, source))
      with_place(source.string(), [&] {
        write_text(to, name, data::decompressed_text(compressed->text()), is_compressed);
      });
  }
}

}  // namespace lathe::io
