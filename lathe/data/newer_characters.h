#pragma once

#include <algorithm>
#include <iterator>

namespace lathe::data {

/// Whether a character is a letter, a mark or a decimal digit that came with Unicode 15.1 or 16.
/// ICU's tables may be older than Hugging Face's, which know them.
inline bool is_newer_word_character(char32_t c) {
  struct Run {
    char32_t first, last;
  };
  // Letters, vowel signs and digits of scripts; punctuation and symbols between them are left out.
  static constexpr Run kRuns[] = {
      {0x0897, 0x0897},    // Arabic
      {0x1C89, 0x1C8A},    // Cyrillic
      {0xA7CB, 0xA7CD},    // Latin
      {0xA7DA, 0xA7DC},    // Latin
      {0x105C0, 0x105F3},  // Todhri
      {0x10D40, 0x10D65},  // Garay
      {0x10D69, 0x10D6D},  // Garay
      {0x10D6F, 0x10D85},  // Garay
      {0x10EC2, 0x10EC4},  // Arabic
      {0x10EFC, 0x10EFC},  // Arabic
      {0x11380, 0x11389},  // Tulu-Tigalari, up to 0x113E2
      {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0},
      {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3},
      {0x113E1, 0x113E2}, {0x116D0, 0x116E3},  // Myanmar
      {0x11BC0, 0x11BE0},                      // Sunuwar
      {0x11BF0, 0x11BF9},                      // Sunuwar
      {0x11F5A, 0x11F5A},                      // Kawi
      {0x13460, 0x143FA},                      // Egyptian hieroglyphs
      {0x16100, 0x16139},                      // Gurung Khema
      {0x16D40, 0x16D6C},                      // Kirat Rai
      {0x16D70, 0x16D79},                      // Kirat Rai
      {0x18CFF, 0x18CFF},                      // Khitan
      {0x1CCF0, 0x1CCF9},                      // outlined digits
      {0x1E5D0, 0x1E5FA},                      // Ol Onal
      {0x2EBF0, 0x2EE5D},                      // CJK, extension I
  };
  const auto* const run =
      std::lower_bound(std::begin(kRuns), std::end(kRuns), c,
                       [](const Run& one, char32_t at) { return one.last < at; });
  return run != std::end(kRuns) && c >= run->first;
}

}  // namespace lathe::data
