#include "lathe/data/gpt2_split.h"

#include "lathe/data/character_class.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

using Class = CharacterClass;

struct Run {
  const char* end;
  const char* last;  // where its last character begins
};

Run run_of(Class wanted, const Class* class_of, const char* next, const char* end) {
  Run run{next, next};
  while (next != end) {
    const char* const start = next;
    if (class_of[next_code_point(next, end)] != wanted) break;
    run = {next, start};
  }
  return run;
}

std::size_t contraction_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (const char c = text[1]; c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  const std::string_view three = text.substr(0, 3);
  return three == "'re" || three == "'ve" || three == "'ll" ? 3 : 0;
}

}  // namespace

std::size_t gpt2_piece_length(std::string_view text) {
  if (const std::size_t length = contraction_length(text)) return length;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const Class* const class_of = character_classes();
  const char* word = begin;
  Class first = class_of[next_code_point(word, end)];
  if (first == Class::Space) {
    // The space in front of a word belongs to it; other white space does not.
    const char* after = word;
    const bool leads = *begin == ' ' && word != end &&
                       (first = class_of[next_code_point(after, end)]) != Class::Space;
    if (!leads) {
      const Run spaces = run_of(Class::Space, class_of, begin, end);
      const bool keeps_all = spaces.end == end || spaces.last == begin;
      return static_cast<std::size_t>((keeps_all ? spaces.end : spaces.last) - begin);
    }
    word = after;
  }
  return static_cast<std::size_t>(run_of(first, class_of, word, end).end - begin);
}

}  // namespace lathe::data
