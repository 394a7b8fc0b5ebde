#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe {

/// A character of a text that ought to be UTF-8.
struct Utf8Character {
  static constexpr std::uint32_t kInvalid = 0xFFFFFFFF;
  std::uint32_t code = kInvalid;
  std::size_t length = 1;  ///< in bytes; a byte that begins no character stands alone
  bool is_valid() const { return code != kInvalid; }
};

/// The character that begins at `at`; overlong forms, surrogates and codes beyond Unicode are not
/// valid.
Utf8Character decode_utf8(std::string_view text, std::size_t at);

bool is_utf8(std::string_view text);

/// The text with each byte that is no UTF-8 written as `\xff`: what JSON and people can read.
std::string escape_bytes(std::string_view text);
/// The text that `escape_bytes` wrote so.
std::string unescape_bytes(std::string_view text);

}  // namespace lathe
