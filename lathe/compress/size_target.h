#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::compress {

/// How small a model is to become: so many bytes, or a share of what it was.
struct SizeTarget {
  std::int64_t bytes = 0;  ///< 0: by the factor
  double factor = 1;       ///< times smaller

  /// The bytes that a model of `original` bytes may take.
  std::int64_t bytes_for(std::int64_t original) const;
};

/// Reads `10x`, or a number of bytes with or without a unit: `1780000`, `1.78MB`, `512KiB`.
SizeTarget parse_size_target(std::string_view text);

/// Bytes for people, in powers of ten: "1.78 MB", "912 bytes".
std::string bytes_text(std::int64_t bytes);

}  // namespace lathe::compress
