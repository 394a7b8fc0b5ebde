#include "lathe/report/markup.h"

#include <cstdint>

namespace lathe::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::uint32_t kInvalid = 0xFFFFFFFF;

struct Character {
  std::uint32_t code = kInvalid;
  std::size_t length = 1;  // an invalid byte is skipped alone
};

// Decodes one character, refusing overlong forms, surrogates and codes beyond Unicode.
Character decode(std::string_view text, std::size_t at) {
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
    const Character character = decode(text, at);
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
        result += character.code == kInvalid ||
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
    const Character character = decode(text, at);
    const bool is_bad = character.code == kInvalid || is_unprintable(character.code);
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
    const std::size_t width = decode(text, at).length;
    if (index == head) result += "…";
    if (index < head || index >= tail_start) result += text.substr(at, width);
    at += width;
  }
  return result;
}

}  // namespace lathe::report
