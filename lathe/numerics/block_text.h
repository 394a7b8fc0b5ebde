#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace lathe::numerics {

/// "block=16", or "block=4x16" where it spans rows.
inline std::string block_text(std::int64_t rows, std::int64_t columns) {
  return rows == 1 ? fmt::format("block={}", columns) : fmt::format("block={}x{}", rows, columns);
}

}  // namespace lathe::numerics
