#include "lathe/report/markup.h"

#include <cstdint>

#include "lathe/core/utf8_text.h"

namespace lathe::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
bool is_line_or_tab(std::uint32_t code) {
  return code == '\n' || code == '\t' || code == '\r';
}

// Control characters, line separators, and the marks that change the reading direction.
bool is_unprintable(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFFFE || code == 0xFFFF;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    const std::string_view bytes = text.substr(at, character.length);
    at += character.length;
    switch (character.code) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += !character.is_valid() ||
                          (is_unprintable(character.code) && !is_line_or_tab(character.code))
                      ? kReplacement
                      : bytes;
    }
  }
  return result;
}

std::string printable_line(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    const bool is_bad = !character.is_valid() || is_unprintable(character.code);
    result += is_bad ? kReplacement : text.substr(at, character.length);
    at += character.length;
  }
  return result;
}

std::size_t num_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

std::string shorten(std::string_view text, std::size_t limit) {
  const std::size_t length = num_characters(text);
  if (length <= limit) return std::string(text);
  const std::size_t head = limit / 2, tail_start = length - (limit - head - 1);
  std::string result;
  std::size_t index = 0;
  for (std::size_t at = 0; at < text.size(); ++index) {
    const std::size_t width = decode_utf8(text, at).length;
    if (index == head) result += "…";
    if (index < head || index >= tail_start) result += text.substr(at, width);
    at += width;
  }
  return result;
}

}  // namespace lathe::report
