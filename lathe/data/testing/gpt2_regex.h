#pragma once

#include <gtest/gtest.h>
#include <unicode/regex.h>

#include <string>
#include <vector>

namespace lathe::data {

/// The pieces of a text by GPT-2's regular expression itself, slowly. White space is written out:
/// ICU's \s leaves out U+000B and U+0085.
inline std::vector<std::string> gpt2_regex_pieces(const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  static const std::unique_ptr<icu::RegexPattern> pattern(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(
          R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+)"
          R"(|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+)"),
      0, status));
  EXPECT_TRUE(U_SUCCESS(status));
  const icu::UnicodeString wide = icu::UnicodeString::fromUTF8(text);
  const std::unique_ptr<icu::RegexMatcher> matcher(pattern->matcher(wide, status));
  std::vector<std::string> pieces;
  while (matcher->find()) {
    pieces.emplace_back();
    matcher->group(status).toUTF8String(pieces.back());
  }
  return pieces;
}

}  // namespace lathe::data
