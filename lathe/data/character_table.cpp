#include "lathe/data/character_table.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/data/unicode_classes.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

// The ranges the reference spaces out. Its extension E begins at 2B920, not at 2B820 as Unicode's
// does: equality with it matters more than being right.
bool is_chinese_character(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_kept_by_cleaning(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return true;
  if (c == 0 || c == kReplacementCharacter) return false;
  return (category_mask(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) == 0 ||
         !is_as_old_as(8, c);
}

namespace {

const icu::Normalizer2& nfd() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const normalizer = icu::Normalizer2::getNFDInstance(status);
  check(U_SUCCESS(status) && normalizer != nullptr, "ICU to have its normalization data");
  return *normalizer;
}

std::u32string decomposed(char32_t c) {
  icu::UnicodeString result;
  // The reference decomposes by Unicode 9.
  if (!is_as_old_as(9, c) || !nfd().getDecomposition(static_cast<UChar32>(c), result)) return {c};
  std::u32string code_points;
  for (std::int32_t i = 0; i < result.length(); i = result.moveIndex32(i, 1))
    code_points.push_back(static_cast<char32_t>(result.char32At(i)));
  return code_points;
}

// Lowercasing one character at a time never sees the end of a word, so a capital sigma always
// becomes the ordinary small one.
std::string lowercased(char32_t c) {
  std::string text;
  if (!u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CHANGES_WHEN_LOWERCASED)) {
    append_utf8(c, text);
    return text;
  }
  icu::UnicodeString one(static_cast<UChar32>(c));
  one.toLower(icu::Locale::getRoot()).toUTF8String(text);
  return text;
}

}  // namespace

CharacterTable::CharacterTable(const NormalizerOptions& options) : options_(options) {
  // Most blocks of 256 are uniform (Han, private use, unassigned), so equal blocks are stored once.
  std::vector<Entry> block(256);
  for (char32_t first = 0; first < 0x110000; first += 256) {
    for (char32_t i = 0; i < 256; ++i) block[i] = make_entry(first + i);
    std::size_t index = 0;
    const std::size_t num_blocks = entries_.size() / 256;
    const std::size_t oldest = num_blocks > 64 ? num_blocks - 64 : 0;
    for (index = num_blocks; index > oldest; --index)
      if (std::equal(block.begin(), block.end(),
                     entries_.begin() + static_cast<std::ptrdiff_t>((index - 1) * 256)))
        break;
    if (index == oldest) {
      entries_.insert(entries_.end(), block.begin(), block.end());
      index = num_blocks + 1;
    }
    blocks_[first >> 8] = static_cast<std::uint16_t>(index - 1);
  }
}

CharacterTable::Entry CharacterTable::make_entry(CharacterKind kind, char32_t code_point,
                                                 const std::string& result) {
  std::string same;
  append_utf8(code_point, same);
  if (result == same) return {.kind = kind, .unchanged = true};
  const Entry entry{.kind = kind,
                    .length = static_cast<std::uint16_t>(result.size()),
                    .offset = static_cast<std::uint32_t>(bytes_.size())};
  bytes_ += result;
  return entry;
}

CharacterTable::Entry CharacterTable::make_entry(char32_t c) {
  using enum CharacterKind;
  const auto type = static_cast<UCharCategory>(u_charType(static_cast<UChar32>(c)));
  // Nothing below concerns these, and they are most of all code points.
  if (type == U_UNASSIGNED || type == U_SURROGATE) {
    const bool chinese = options_.isolate_chinese_characters && is_chinese_character(c);
    return {.kind = chinese ? Isolated : Word, .unchanged = true};
  }
  if (options_.clean_text && !is_kept_by_cleaning(c)) return {.kind = Removed};
  if (is_white_space(c)) return {.kind = Space};
  const bool isolated = options_.isolate_chinese_characters && is_chinese_character(c);
  if (type == U_OTHER_LETTER && isolated && (c < 0xF900 || c > 0xFAFF) && c < 0x2F800)
    return {.kind = Isolated, .unchanged = true};

  // Decompose and drop marks, then lowercase; both on code points, each result judged by itself.
  std::u32string code_points = {c};
  bool has_starter = false;
  bool has_movable = false;
  if (options_.strip_accents) {
    code_points = decomposed(c);
    for (const char32_t part : code_points) {
      const bool starter =
          !is_as_old_as(9, part) || u_getCombiningClass(static_cast<UChar32>(part)) == 0;
      has_starter |= starter;
      has_movable |= !starter && !is_nonspacing_mark(part);
    }
    if (has_movable && code_points.size() > 1) {
      std::string result;
      for (const char32_t part : code_points) append_utf8(part, result);
      return make_entry(Sequence, c, result);
    }
    std::erase_if(code_points, is_nonspacing_mark);
    if (code_points.empty()) return {.kind = has_starter ? RemovedStarter : Removed};
  }
  std::string result;
  bool all_word = true;
  for (const char32_t part : code_points) {
    if (options_.lowercase) {
      result += lowercased(part);
    } else {
      append_utf8(part, result);
    }
    all_word &= !is_white_space(part) && !is_punctuation(part);
  }
  if (has_movable) return make_entry(MovableMark, c, result);
  if (isolated || (!all_word && code_points.size() == 1)) return make_entry(Isolated, c, result);
  if (all_word) return make_entry(Word, c, result);
  result.clear();
  for (const char32_t part : code_points) append_utf8(part, result);
  return make_entry(Sequence, c, result);
}

}  // namespace lathe::data
