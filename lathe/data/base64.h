#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::data {

/// The bytes that base64 stands for, padded with `=` or not; none where it is broken.
inline std::optional<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    std::uint32_t value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<std::uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<std::uint32_t>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      value = static_cast<std::uint32_t>(c - '0') + 52;
    } else if (c == '+' || c == '/') {
      value = c == '+' ? 62 : 63;
    } else {
      return std::nullopt;
    }
    bits = (bits << 6 | value) & 0xFFFF;
    num_bits += 6;
    if (num_bits >= 8) bytes += static_cast<char>(bits >> (num_bits -= 8) & 0xFF);
  }
  return bytes;
}

}  // namespace lathe::data
