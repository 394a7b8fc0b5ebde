#include "lathe/io/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "lathe/core/file_memory.h"

namespace lathe::io {

MappedFile::MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size)
    : path_(std::move(path)), data_(data), size_(size) {
  if (size_ > 0) add_file_memory(bytes());
}

MappedFile::~MappedFile() {
  if (size_ == 0) return;
  remove_file_memory(bytes());
  ::munmap(const_cast<std::byte*>(data_), size_);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  return map(open_regular_file(path), path);
}

std::shared_ptr<const MappedFile> MappedFile::map(const FileDescriptor& file,
                                                  std::filesystem::path path) {
  static constexpr std::byte kNothing{};
  const std::size_t size = regular_file_size(file, path);
  const std::byte* data = &kNothing;  // the kernel refuses to map zero bytes
  if (size > 0) {
    void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (memory == MAP_FAILED) fail_with_errno(path, "map into memory", errno);
    data = static_cast<const std::byte*>(memory);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(path), data, size));
}

}  // namespace lathe::io
