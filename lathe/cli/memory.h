#pragma once

#include <cstdint>

namespace lathe::cli {

/// The most memory this process has held at once.
std::int64_t peak_memory_bytes();

}  // namespace lathe::cli
