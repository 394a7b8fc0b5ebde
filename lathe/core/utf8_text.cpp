#include "lathe/core/utf8_text.h"

#include <fmt/format.h>

#include <charconv>

namespace lathe {

Utf8Character decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return {};
  std::uint32_t code = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const std::uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    if (!character.is_valid()) return false;
    at += character.length;
  }
  return true;
}

std::string escape_bytes(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    if (character.is_valid())
      result += text.substr(at, character.length);
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    at += character.length;
  }
  return result;
}

std::string unescape_bytes(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    int byte = 0;
    const std::string_view digits =
        text.substr(at).starts_with("\\x") ? text.substr(at + 2, 2) : "";
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    const bool is_escape = digits.size() == 2 && end == digits.data() + 2;
    result += is_escape ? static_cast<char>(byte) : text[at];
    if (is_escape) at += 3;
  }
  return result;
}

}  // namespace lathe
