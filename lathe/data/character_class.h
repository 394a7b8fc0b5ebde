#pragma once

#include <cstdint>

#include "lathe/data/utf8.h"

namespace lathe::data {

/// The classes by which byte-level tokenizers cut texts.
enum class CharacterClass : std::uint8_t { Other, Letter, Number, Space };

/// The class of every code point. Asking ICU for each character would cost more than all the rest.
const CharacterClass* character_classes();

/// Where the characters of a class end that follow `next`.
inline const char* end_of_run(CharacterClass wanted, const CharacterClass* class_of,
                              const char* next, const char* end) {
  while (next != end) {
    const char* after = next;
    if (class_of[next_code_point(after, end)] != wanted) break;
    next = after;
  }
  return next;
}

}  // namespace lathe::data
