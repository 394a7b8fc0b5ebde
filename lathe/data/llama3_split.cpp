#include "lathe/data/llama3_split.h"

#include <array>

#include "lathe/data/character_class.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

bool is_line_end(char byte) {
  return byte == '\n' || byte == '\r';
}

// Case is folded as Unicode does: the long s is an s.
std::size_t any_case_contraction_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (text.substr(1, 2) == "\u017F") return 3;
  const char second = static_cast<char>(text[1] | 0x20);
  if (second == 's' || second == 't' || second == 'm' || second == 'd') return 2;
  if (text.size() < 3) return 0;
  const char third = static_cast<char>(text[2] | 0x20);
  const bool is_known = (second == 'r' && third == 'e') || (second == 'v' && third == 'e') ||
                        (second == 'l' && third == 'l');
  return is_known ? 3 : 0;
}

}  // namespace

std::size_t llama3_piece_length(std::string_view text, int most_digits) {
  if (const std::size_t length = any_case_contraction_length(text)) return length;
  const CharacterClass* const class_of = character_classes();
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto length_to = [begin](const char* at) { return static_cast<std::size_t>(at - begin); };
  const char* next = begin;
  const CharacterClass first = class_of[next_code_point(next, end)];
  if (first == CharacterClass::Letter)
    return length_to(end_of_run(CharacterClass::Letter, class_of, next, end));
  if (first == CharacterClass::Number) {
    for (int digits = 1; digits < most_digits && next != end; ++digits) {
      const char* after = next;
      if (class_of[next_code_point(after, end)] != CharacterClass::Number) break;
      next = after;
    }
    return length_to(next);
  }
  if (!is_line_end(*begin)) {
    const char* const word = end_of_run(CharacterClass::Letter, class_of, next, end);
    if (word != next) return length_to(word);
  }
  // Other characters, perhaps behind a space.
  const char* const others = *begin == ' ' ? next : begin;
  if (const char* at = end_of_run(CharacterClass::Other, class_of, others, end); at != others) {
    while (at != end && is_line_end(*at)) ++at;
    return length_to(at);
  }
  const char* last = begin;          // where the last character of the white space begins
  const char* after_line = nullptr;  // behind its last end of a line
  const char* at = begin;
  while (at != end) {
    const char* after = at;
    if (class_of[next_code_point(after, end)] != CharacterClass::Space) break;
    if (is_line_end(*at)) after_line = after;
    last = at;
    at = after;
  }
  if (after_line) return length_to(after_line);
  return length_to(at == end || last == begin ? at : last);
}

}  // namespace lathe::data
