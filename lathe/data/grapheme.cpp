#include "lathe/data/grapheme.h"

#include <unicode/uchar.h>

#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

int break_class(char32_t c) {
  // Versions of Unicode go on to fill this block of combining marks.
  if (c >= 0x1AB0 && c <= 0x1AFF) return U_GCB_EXTEND;
  return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK);
}

bool is_pictographic(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
}

// Whether two neighbours stay together whatever stands before them.
bool are_joined(int left, int right) {
  if (left == U_GCB_CR) return right == U_GCB_LF;
  if (left == U_GCB_CONTROL || left == U_GCB_LF) return false;
  switch (right) {
    case U_GCB_CONTROL:
    case U_GCB_CR:
    case U_GCB_LF:
      return false;
    case U_GCB_EXTEND:
    case U_GCB_ZWJ:
    case U_GCB_SPACING_MARK:
      return true;
    default:
      break;
  }
  switch (left) {
    case U_GCB_PREPEND:
      return true;
    case U_GCB_L:
      return right == U_GCB_L || right == U_GCB_V || right == U_GCB_LV || right == U_GCB_LVT;
    case U_GCB_LV:
    case U_GCB_V:
      return right == U_GCB_V || right == U_GCB_T;
    case U_GCB_LVT:
    case U_GCB_T:
      return right == U_GCB_T;
    default:
      return false;
  }
}

}  // namespace

std::size_t grapheme_length(std::string_view text) {
  const char* next = text.data();
  const char* const end = next + text.size();
  char32_t character = next_code_point(next, end);
  int left = break_class(character);
  bool may_join_picture = is_pictographic(character);  // a picture and extensions, so far
  bool has_open_flag = left == U_GCB_REGIONAL_INDICATOR;
  while (next != end) {
    const char* after = next;
    character = next_code_point(after, end);
    const int right = break_class(character);
    const bool is_picture = is_pictographic(character);
    const bool joins_picture = may_join_picture && left == U_GCB_ZWJ && is_picture;
    const bool closes_flag = has_open_flag && right == U_GCB_REGIONAL_INDICATOR;
    if (!are_joined(left, right) && !joins_picture && !closes_flag) break;
    may_join_picture =
        is_picture || (may_join_picture && (right == U_GCB_EXTEND || right == U_GCB_ZWJ));
    has_open_flag = right == U_GCB_REGIONAL_INDICATOR && !closes_flag;
    left = right;
    next = after;
  }
  return static_cast<std::size_t>(next - text.data());
}

}  // namespace lathe::data
