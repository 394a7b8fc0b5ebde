#pragma once

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lathe/data/character_table.h"
#include "lathe/data/token_table.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

/// What a byte means where a code point may start. A byte with which a token begins that is matched
/// in the raw text is MaybeRaw whatever else it is; it is looked at again when no such token
/// follows.
enum class ByteClass : std::uint8_t { Word, Isolated, Space, Removed, Wide, MaybeRaw };

/// How BERT's normalizer treats every character, with a table of its own for single bytes.
class BertCharacters {
 public:
  explicit BertCharacters(const NormalizerOptions& options);

  /// Tokens that are matched in the raw text may begin with this byte.
  void expect_raw(unsigned char byte) { class_[byte] = ByteClass::MaybeRaw; }

  const CharacterTable& table() const { return table_; }
  ByteClass class_of(unsigned char byte) const { return class_[byte]; }
  /// The class of a byte with which no raw token begins after all.
  ByteClass plain_class_of(unsigned char byte) const;
  /// What a Word or Isolated byte becomes.
  char result_of(unsigned char byte) const { return result_[byte]; }

 private:
  CharacterTable table_;
  std::array<ByteClass, 256> class_{};
  std::array<char, 256> result_{};
};

/// No word may have more characters for its length to be told.
inline constexpr std::int32_t kMostCharactersPerWord = 1000;

/// Normalizes a text as BERT's tokenizer does and cuts it into words, which are handed to a sink
/// one after the other; nothing is allocated. The sink has
///
///   void word(const char* bytes, std::size_t length)   kPadding bytes after it may be read
///   std::size_t raw_length(const char* next, const char* end)   of a raw token there, or 0
///   void raw(const char* next, std::size_t length)              takes that token
///   bool has_enough() const                            asked at spaces; true ends the text
template <typename Sink>
class BertWords {
 public:
  BertWords(const BertCharacters& characters, Sink& sink) : characters_(characters), sink_(sink) {}

  void read(std::string_view text) {
    const char* next = text.data();
    const char* const end = next + text.size();
    while (next != end) {
      const auto byte = static_cast<unsigned char>(*next);
      ByteClass kind = characters_.class_of(byte);
      if (kind == ByteClass::MaybeRaw) {
        if (const std::size_t length = take_raw(next, end)) {
          next += length;
          continue;
        }
        kind = characters_.plain_class_of(byte);
      }
      switch (kind) {
        case ByteClass::Word:
          append_byte(characters_.result_of(byte));
          next = append_word_bytes(next + 1, end);
          break;
        case ByteClass::Space:
          end_word();
          ++next;
          if (sink_.has_enough()) return;
          break;
        case ByteClass::Isolated:
          end_word();
          append_byte(characters_.result_of(byte));
          end_word();
          ++next;
          break;
        case ByteClass::Removed:
          ++next;
          break;
        default: {
          const char* const start = next;
          const char32_t code_point = next_code_point(next, end);
          take(code_point, std::string_view(start, static_cast<std::size_t>(next - start)));
        }
      }
    }
    end_word();
  }

 private:
  struct Mark {
    std::uint8_t combining_class;
    std::string_view bytes;
  };

  // What stands before a raw token ends there, and comes first.
  std::size_t take_raw(const char* next, const char* end) {
    const std::size_t length = sink_.raw_length(next, end);
    if (length == 0) return 0;
    end_word();
    sink_.raw(next, length);
    return length;
  }

  void append_byte(char byte) {
    if (!marks_.empty()) flush_marks();
    if (length_ < kCapacity) word_[length_++] = byte;
  }
  // The rest of a run of plain word bytes; where nearly all time is spent.
  const char* append_word_bytes(const char* next, const char* end) {
    char* target = word_ + length_;
    const char* const stop =
        next +
        std::min<std::ptrdiff_t>(end - next, static_cast<std::ptrdiff_t>(kCapacity - length_));
    while (next != stop) {
      const auto byte = static_cast<unsigned char>(*next);
      if (characters_.class_of(byte) != ByteClass::Word) break;
      *target++ = characters_.result_of(byte);
      ++next;
    }
    length_ = static_cast<std::size_t>(target - word_);
    return next;
  }
  void append(std::string_view bytes) {
    // A word that fills the buffer is too long anyhow: what counts is that it stays so.
    const std::size_t count = std::min(bytes.size(), kCapacity - length_);
    std::copy_n(bytes.data(), count, word_ + length_);
    length_ += count;
  }

  void take(char32_t code_point, std::string_view source) {
    const CharacterTable::Entry& entry = characters_.table().entry(code_point);
    // A broken sequence is U+FFFD, whatever its bytes were.
    if (code_point == kReplacementCharacter) source = "\xEF\xBF\xBD";
    const std::string_view bytes =
        entry.unchanged ? source : characters_.table().replacement(entry);
    switch (entry.kind) {
      case CharacterKind::Word:
        flush_marks();
        append(bytes);
        break;
      case CharacterKind::Isolated:
        end_word();
        append(bytes);
        end_word();
        break;
      case CharacterKind::Space:
        end_word();
        break;
      case CharacterKind::Removed:
        break;
      case CharacterKind::RemovedStarter:
        flush_marks();
        break;
      case CharacterKind::MovableMark:
        insert_mark({u_getCombiningClass(static_cast<UChar32>(code_point)), bytes});
        break;
      case CharacterKind::Sequence:
        for (const char *next = bytes.data(), *end = next + bytes.size(); next != end;) {
          const char* const start = next;
          const char32_t part = next_code_point(next, end);
          take(part, std::string_view(start, static_cast<std::size_t>(next - start)));
        }
    }
  }

  // Canonical ordering: marks of lower class go first, equal ones stay in order.
  void insert_mark(Mark mark) {
    const auto at = std::upper_bound(
        marks_.begin(), marks_.end(), mark,
        [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    marks_.insert(at, mark);
  }
  void flush_marks() {
    for (const Mark& mark : marks_) append(mark.bytes);
    marks_.clear();
  }

  void end_word() {
    if (!marks_.empty()) flush_marks();
    if (length_ == 0) return;
    sink_.word(word_, length_);
    length_ = 0;
  }

  // Four bytes for each allowed character and one character more, so that a word that was cut off
  // still counts as too long.
  static constexpr std::size_t kCapacity = std::size_t{4} * (kMostCharactersPerWord + 1);

  const BertCharacters& characters_;
  Sink& sink_;
  std::vector<Mark> marks_;
  std::size_t length_ = 0;
  char word_[kCapacity + TokenTable::kPadding];
};

}  // namespace lathe::data
