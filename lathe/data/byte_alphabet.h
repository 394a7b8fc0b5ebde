#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::data {

/// Byte-level vocabularies write every byte as one printable character: those that are printable in
/// Latin-1 as themselves, the other 68 as U+0100 and up, in order. A space is U+0120.
char32_t character_of_byte(std::uint8_t byte);

/// Bytes in that alphabet, as UTF-8.
std::string write_in_byte_alphabet(std::string_view bytes);

/// The bytes that a token stands for; none when it holds a character outside the alphabet.
std::optional<std::string> read_byte_alphabet(std::string_view token);

}  // namespace lathe::data
