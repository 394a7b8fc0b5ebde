#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

/// What the normalizer is told to do to a text before it is cut into words.
struct NormalizerOptions {
  /// Removes control and format characters and U+FFFD, turns white space into spaces.
  bool clean_text = true;
  /// Makes every Chinese character a word of its own.
  bool isolate_chinese_characters = true;
  /// Decomposes characters and drops the nonspacing marks.
  bool strip_accents = true;
  bool lowercase = true;
  bool operator==(const NormalizerOptions&) const = default;
};

/// Whether the reference puts spaces around a character: most ideographs.
bool is_chinese_character(char32_t c);
/// Whether cleaning keeps a character.
bool is_kept_by_cleaning(char32_t c);

/// What becomes of one code point.
enum class CharacterKind : std::uint8_t {
  Word,            ///< appended to the current word
  Isolated,        ///< a word of its own: punctuation, Chinese
  Space,           ///< ends the current word
  Removed,         ///< as if it were not there
  RemovedStarter,  ///< removed after decomposition, but marks are not reordered across it
  MovableMark,     ///< appended, after marks of lower combining class that follow it
  Sequence,        ///< several code points, each with a fate of its own
};

/// The fate of every code point under one set of options: clean, isolate, decompose and strip,
/// lowercase, and the classes that cut words, folded into one look-up.
///
/// The steps of the reference work on whole texts one after the other. They can be folded because
/// each looks at single characters, except canonical reordering in the decomposition: that only
/// shows when two kept marks of nonzero class meet, which `MovableMark` leaves to the reader.
class CharacterTable {
 public:
  struct Entry {
    CharacterKind kind = CharacterKind::Word;
    /// The bytes of the code point stay as they are; `offset` and `length` are unused.
    bool unchanged = false;
    std::uint16_t length = 0;
    std::uint32_t offset = 0;
    bool operator==(const Entry&) const = default;
  };

  explicit CharacterTable(const NormalizerOptions& options);

  const NormalizerOptions& options() const { return options_; }
  /// `code_point` must be at most U+10FFFF.
  const Entry& entry(char32_t code_point) const {
    return entries_[static_cast<std::size_t>(blocks_[code_point >> 8]) << 8 | (code_point & 0xFF)];
  }
  /// What an entry that is not `unchanged` turns into, as UTF-8.
  std::string_view replacement(const Entry& entry) const {
    return std::string_view(bytes_).substr(entry.offset, entry.length);
  }

 private:
  Entry make_entry(char32_t code_point);
  Entry make_entry(CharacterKind kind, char32_t code_point, const std::string& result);

  NormalizerOptions options_;
  std::array<std::uint16_t, 0x1100> blocks_{};
  std::vector<Entry> entries_;
  std::string bytes_;
};

}  // namespace lathe::data
