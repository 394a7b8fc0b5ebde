#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lathe::io {

/// The bytes of a safetensors file with this header and data, whether or not they make sense.
inline std::string file_of(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file.append(header).append(data);
}

}  // namespace lathe::io
