#pragma once

#include <string>
#include <string_view>

#include "lathe/data/normalizers/normalizer.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

/// Replaces every character by what `append(character, bytes, result)` appends for it. A text whose
/// first characters vanish no longer begins at the start.
template <typename Append>
void replace_characters(NormalizedText& text, const Append& append) {
  std::string result;
  result.reserve(text.text.size() + 8);
  const char* next = text.text.data();
  const char* const end = next + text.text.size();
  while (next != end) {
    const char* const begin = next;
    const char32_t character = next_code_point(next, end);
    append(character, std::string_view(begin, static_cast<std::size_t>(next - begin)), result);
    if (result.empty()) text.is_at_start = false;
  }
  text.text = std::move(result);
}

/// Appends the lower case of one character: no character sees its neighbours, so that a capital
/// sigma always becomes the ordinary small one.
void append_lowercase(char32_t character, std::string_view bytes, std::string& result);

}  // namespace lathe::data
