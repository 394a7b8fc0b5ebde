#include "lathe/core/utf8_text.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(Utf8Text, KnowsWhatIsUtf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("na\xC3\xAFve \xF0\x9F\x98\x80"));
  EXPECT_FALSE(is_utf8("caf\xE9"));           // Latin-1
  EXPECT_FALSE(is_utf8("\xC0\xAF"));          // an overlong slash
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // half of a surrogate pair
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // beyond Unicode
  EXPECT_FALSE(is_utf8("cut \xE2\x82"));
}

TEST(Utf8Text, WritesOtherBytesAsNumbers) {
  EXPECT_EQ(escape_bytes("caf\xE9/na\xC3\xAFve"), "caf\\xe9/na\xC3\xAFve");
  EXPECT_EQ(escape_bytes("cut \xE2\x82"), "cut \\xe2\\x82");
}

TEST(Utf8Text, ReadsBackWhatItWrote) {
  for (const char* const text : {"plain", "caf\xE9/x", "\xE2\x82", "a\\b"})
    EXPECT_EQ(unescape_bytes(escape_bytes(text)), text);
}

}  // namespace
}  // namespace lathe
