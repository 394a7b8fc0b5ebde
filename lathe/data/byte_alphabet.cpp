#include "lathe/data/byte_alphabet.h"

#include <array>

#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> characters{};
  std::array<std::int16_t, 0x200> bytes{};  // by character; -1: not in the alphabet

  constexpr Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      characters[byte] = is_printable(byte) ? byte : next++;
      bytes[characters[byte]] = static_cast<std::int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

char32_t character_of_byte(std::uint8_t byte) {
  return kAlphabet.characters[byte];
}

std::string write_in_byte_alphabet(std::string_view bytes) {
  std::string token;
  for (const char byte : bytes)
    append_utf8(character_of_byte(static_cast<std::uint8_t>(byte)), token);
  return token;
}

std::optional<std::string> read_byte_alphabet(std::string_view token) {
  std::string bytes;
  for (const char *next = token.data(), *end = next + token.size(); next != end;) {
    const char32_t character = next_code_point(next, end);
    if (character >= kAlphabet.bytes.size() || kAlphabet.bytes[character] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.bytes[character]));
  }
  return bytes;
}

}  // namespace lathe::data
