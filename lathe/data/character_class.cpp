#include "lathe/data/character_class.h"

#include <vector>

#include "lathe/data/unicode_classes.h"

namespace lathe::data {
namespace {

CharacterClass class_from_unicode(char32_t code_point) {
  const std::uint32_t category = category_mask(code_point);
  if (category & U_GC_L_MASK) return CharacterClass::Letter;
  if (category & U_GC_N_MASK) return CharacterClass::Number;
  return is_white_space(code_point) ? CharacterClass::Space : CharacterClass::Other;
}

}  // namespace

const CharacterClass* character_classes() {
  static const std::vector<CharacterClass> table = [] {
    std::vector<CharacterClass> all(0x110000);
    for (char32_t each = 0; each < all.size(); ++each) all[each] = class_from_unicode(each);
    return all;
  }();
  return table.data();
}

}  // namespace lathe::data
