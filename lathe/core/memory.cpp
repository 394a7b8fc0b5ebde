#include "lathe/core/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace lathe {
namespace {

// Cache-line aligned, so that vector loads of a row never straddle needlessly.
constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = std::size_t{1} << 12;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::byte* allocate_memory(std::size_t bytes) {
  if (bytes < kLargeMemory)
    return static_cast<std::byte*>(::operator new(bytes == 0 ? 1 : bytes, kAlignment));
  if (bytes > SIZE_MAX - 2 * kHugePage) throw std::bad_alloc();
  // More than is needed, cut to start on a huge page. The end is not rounded up to one: a huge page
  // there would be memory that nobody uses.
  const std::size_t size = round_up(bytes, kPage);
  void* const mapped =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t before = round_up(address, kHugePage) - address;
  if (before > 0) munmap(first, before);
  if (before < kHugePage) munmap(first + before + size, kHugePage - before);
  madvise(first + before, size, MADV_HUGEPAGE);  // a wish: small pages work as well
  return first + before;
}

void free_memory(std::byte* memory, std::size_t bytes) noexcept {
  if (bytes < kLargeMemory)
    ::operator delete(memory, kAlignment);
  else
    munmap(memory, round_up(bytes, kPage));
}

}  // namespace lathe
