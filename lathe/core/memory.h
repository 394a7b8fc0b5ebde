#pragma once

#include <cstddef>

namespace lathe {

/// Pieces of at least this size come from the system as huge pages, full of zeros: a step of
/// training touches so much memory for the first time that small pages cost a third of it.
inline constexpr std::size_t kLargeMemory = std::size_t{4} << 20;

/// Memory on a cache line; what is in it is undefined below `kLargeMemory`. Throws std::bad_alloc.
std::byte* allocate_memory(std::size_t bytes);
/// Gives back what `allocate_memory` gave for the same number of bytes.
void free_memory(std::byte* memory, std::size_t bytes) noexcept;

}  // namespace lathe
