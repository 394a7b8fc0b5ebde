#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::data {

/// What stands for bytes that are not UTF-8.
inline constexpr char32_t kReplacementCharacter = 0xFFFD;

/// Reads the code point at `next` (before `end`) and moves past it. A truncated, overlong,
/// surrogate or out-of-range sequence is read as one U+FFFD for its longest possible prefix, so any
/// bytes at all can be read and every call moves on.
inline char32_t next_code_point(const char*& next, const char* end) {
  const auto lead = static_cast<unsigned char>(*next++);
  if (lead < 0x80) return lead;
  int num_continuations = 0;
  char32_t value = 0;
  // The second byte's range is what rules out overlong forms, surrogates and values past U+10FFFF.
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    num_continuations = 1;
    value = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    num_continuations = 2;
    value = lead & 0x0Fu;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    num_continuations = 3;
    value = lead & 0x07u;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return kReplacementCharacter;
  }
  for (int i = 0; i < num_continuations; ++i) {
    if (next == end) return kReplacementCharacter;
    const auto byte = static_cast<unsigned char>(*next);
    if (byte < low || byte > high) return kReplacementCharacter;
    value = value << 6 | (byte & 0x3Fu);
    low = 0x80;
    high = 0xBF;
    ++next;
  }
  return value;
}

/// Appends a code point as UTF-8.
inline void append_utf8(char32_t code_point, std::string& text) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

/// Whether all of `text` is UTF-8. A literal U+FFFD is UTF-8; a broken sequence is not.
inline bool is_utf8(std::string_view text) {
  const char* next = text.data();
  const char* const end = next + text.size();
  while (next != end) {
    const char* const start = next;
    if (next_code_point(next, end) != kReplacementCharacter) continue;
    if (std::string_view(start, static_cast<std::size_t>(next - start)) != "\xEF\xBF\xBD")
      return false;
  }
  return true;
}

/// `text` with U+FFFD for everything in it that is not UTF-8.
inline std::string as_utf8(std::string_view text) {
  std::string sound;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (next != end) append_utf8(next_code_point(next, end), sound);
  return sound;
}

}  // namespace lathe::data
