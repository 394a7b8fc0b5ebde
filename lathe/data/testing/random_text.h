#pragma once

#include <string>
#include <string_view>

#include "lathe/data/counter_random.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

/// A short text, always UTF-8, of what tokenizers stumble over: words, contractions, white space of
/// every kind, code, Chinese, emoji with modifiers, marks, controls, any code point at all.
inline std::string random_text(std::uint64_t seed) {
  static constexpr std::string_view kParts[] = {
      " ",      "  ",   "\n",   "\t",      "\r\n",   "\v",     "\u0085", "\u00A0", "\u2003",
      "\u3000", "'s",   "'ll",  "'RE",     "'",      "the",    "Film",   "ing",    "under",
      "if(x)",  "->",   "==",   "/*",      "_",      "0",      "1999",   "½",      "٣",
      "中",     "文字", "é",    "e\u0301", "ß",      "\u200D", "👍🏽",   "🇨🇭",     "👩‍🚀",
      "\x01",   "\x1b", "\x7f", "\uFFFD",  "\uFEFF", "ก็",      "ñ",      "…",      "<|x|>"};
  CounterRandom random(seed, 77);
  std::string text;
  for (std::uint64_t i = 0, count = random.below(12); i < count; ++i) {
    if (random.below(8) != 0) {
      text += kParts[random.below(std::size(kParts))];
      continue;
    }
    const auto code_point = static_cast<char32_t>(random.below(0x110000));
    if (code_point < 0xD800 || code_point > 0xDFFF) append_utf8(code_point, text);
  }
  return text;
}

}  // namespace lathe::data
