// What Hugging Face's library takes a character for, by Unicode's properties.
#pragma once

#include <unicode/uchar.h>

#include <cstdint>

#include "lathe/data/newer_characters.h"

namespace lathe::data {

inline std::uint32_t category_mask(char32_t c) {
  return U_GET_GC_MASK(static_cast<UChar32>(c));
}
/// Whether a character was there in a version of Unicode. Parts of the library go by old tables:
/// what came later has no class for them.
inline bool is_as_old_as(int version, char32_t c) {
  if (c < 0x80) return true;
  UVersionInfo age{};
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] != 0 && age[0] <= version;
}
inline bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE) != 0;
}
/// What `\w` matches: letters, marks, decimal digits, connectors and joiners.
inline bool is_word_character(char32_t c) {
  if (c < 0x80)
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) != 0 ||
         (category_mask(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 || c == 0x200C ||
         c == 0x200D || is_newer_word_character(c);
}
/// ASCII's punctuation includes its symbols, such as `$`; Unicode's does not. The library goes by
/// Unicode 8, in which later characters were none and two were that are no longer.
inline bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  if ((category_mask(c) & U_GC_P_MASK) == 0) return c == 0x166D || c == 0x111C9;
  return is_as_old_as(8, c);
}
/// What BERT's normalizer takes for an accent: by Unicode 8, in which a few had other categories.
inline bool is_nonspacing_mark(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1734) return true;
  return (category_mask(c) & U_GC_MN_MASK) != 0 && is_as_old_as(8, c) && c != 0x1885 &&
         c != 0x1886 && c != 0xA9BD && c != 0x111C9;
}
/// What is stripped as an accent elsewhere: by Unicode 9.
inline bool is_combining_mark(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1CF2 || c == 0x1CF3) return true;
  return (category_mask(c) & U_GC_M_MASK) != 0 && is_as_old_as(9, c) && c != 0x111C9;
}
inline bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return (category_mask(c) & U_GC_N_MASK) != 0;
}

}  // namespace lathe::data
