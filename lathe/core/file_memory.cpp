#include "lathe/core/file_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <mutex>

namespace lathe {
namespace {

constexpr std::uintptr_t kPage = 4096;

std::uintptr_t begin_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data());
}
std::uintptr_t end_of(std::span<const std::byte> bytes) {
  return begin_of(bytes) + bytes.size();
}

struct FileMemory {
  std::mutex mutex;
  std::map<std::uintptr_t, std::uintptr_t> ends;  // by beginning

  // With the mutex held.
  bool holds(std::span<const std::byte> bytes) const {
    const auto after = ends.upper_bound(begin_of(bytes));
    return after != ends.begin() && end_of(bytes) <= std::prev(after)->second;
  }
};

FileMemory& file_memory() {
  static FileMemory memory;
  return memory;
}

}  // namespace

void add_file_memory(std::span<const std::byte> bytes) {
  const std::scoped_lock lock(file_memory().mutex);
  file_memory().ends[begin_of(bytes)] = end_of(bytes);
}

void remove_file_memory(std::span<const std::byte> bytes) {
  const std::scoped_lock lock(file_memory().mutex);
  file_memory().ends.erase(begin_of(bytes));
}

bool is_file_memory(std::span<const std::byte> bytes) {
  const std::scoped_lock lock(file_memory().mutex);
  return file_memory().holds(bytes);
}

void let_go(std::span<const std::byte> bytes) {
  // Pages at the ends are shared with neighbours that may be in use.
  const std::uintptr_t first = (begin_of(bytes) + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = end_of(bytes) / kPage * kPage;
  if (first >= last) return;
  // The lock keeps the file mapped: another mapping in its place might not be one of a file.
  const std::scoped_lock lock(file_memory().mutex);
  if (file_memory().holds(bytes))
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace lathe
