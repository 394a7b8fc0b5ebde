// Pre-tokenizers that cut at characters of a class.
#include <unicode/uscript.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/pre_tokenizers/cut_pieces.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/unicode_classes.h"

namespace lathe::data::character_cutters {
namespace {

using Json = nlohmann::json;

class WhitespaceSplit final : public PreTokenizer {
 public:
  explicit WhitespaceSplit(const Json&) {}
  void cut(CutText& text) const override {
    cut_at_characters(text, Delimiters::Removed, is_white_space);
  }
};

class BertPreTokenizer final : public PreTokenizer {
 public:
  explicit BertPreTokenizer(const Json&) {}
  void cut(CutText& text) const override {
    cut_at_characters(text, Delimiters::Removed, is_white_space);
    cut_at_characters(text, Delimiters::Isolated, is_punctuation);
  }
};

// Words, and runs of what is neither of words nor white space.
class Whitespace final : public PreTokenizer {
 public:
  explicit Whitespace(const Json&) {}
  void cut(CutText& text) const override {
    cut_at_characters(text, Delimiters::Removed, is_white_space);
    cut_at_characters(text, Delimiters::Contiguous, is_word_character);
  }
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(const Json& description) {
    std::string behavior = "Isolated";
    read_member(description, "behavior", behavior);
    delimiters_ = parse_delimiters(plain_name(behavior));
  }
  void cut(CutText& text) const override { cut_at_characters(text, delimiters_, is_punctuation); }

 private:
  Delimiters delimiters_ = Delimiters::Isolated;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(const Json& description) {
    read_member(description, "individual_digits", individual_);
  }
  void cut(CutText& text) const override {
    cut_at_characters(text, individual_ ? Delimiters::Isolated : Delimiters::Contiguous,
                      is_numeric);
  }

 private:
  bool individual_ = false;
};

class CharDelimiterSplit final : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(const Json& description) {
    std::string text;
    read_member(description, "delimiter", text);
    const char* next = text.data();
    const char* const end = next + text.size();
    if (next != end) delimiter_ = next_code_point(next, end);
    if (text.empty() || next != end) fail("delimiter is not one character");
  }
  void cut(CutText& text) const override {
    cut_at_characters(text, Delimiters::Removed, [this](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_ = 0;
};

// Cuts where the script changes. Spaces and characters of no script go with what stands before, and
// where nothing does they are gone, as in the reference; Japanese's scripts count as Han.
class UnicodeScripts final : public PreTokenizer {
 public:
  explicit UnicodeScripts(const Json&) {}
  void cut(CutText& text) const override {
    std::vector<CutText::Piece> pieces;
    for (const CutText::Piece& piece : text.pieces)
      cut_piece(text.view(piece), piece.begin, pieces);
    text.pieces = std::move(pieces);
  }

 private:
  static constexpr int kAny = -1;

  static int script_of(char32_t c) {
    if (c == ' ' || !is_as_old_as(9, c)) return kAny;  // its table is that of Unicode 9
    if (c == 0x30FC) return USCRIPT_HAN;               // the mark of long vowels
    UErrorCode status = U_ZERO_ERROR;
    const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &status);
    if (script == USCRIPT_UNKNOWN) return kAny;
    return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA ? USCRIPT_HAN : script;
  }
  static void cut_piece(std::string_view text, std::size_t offset,
                        std::vector<CutText::Piece>& pieces) {
    int last = kAny;
    std::size_t done = 0;
    const char* next = text.data();
    const char* const end = next + text.size();
    while (next != end) {
      const auto at = static_cast<std::size_t>(next - text.data());
      const int script = script_of(next_code_point(next, end));
      if (script == kAny || script == last) continue;
      if (last != kAny) pieces.push_back({offset + done, at - done});
      done = at;
      last = script;
    }
    if (last != kAny) pieces.push_back({offset + done, text.size() - done});
  }
};

template <typename Kind>
std::unique_ptr<const PreTokenizer> make(const Json& description) {
  return std::make_unique<Kind>(description);
}

const Register whitespace_split{
    PreTokenizerKind{.name = "WhitespaceSplit", .make = make<WhitespaceSplit>}};
const Register bert{PreTokenizerKind{.name = "BertPreTokenizer", .make = make<BertPreTokenizer>}};
const Register whitespace{PreTokenizerKind{.name = "Whitespace", .make = make<Whitespace>}};
const Register punctuation{PreTokenizerKind{.name = "Punctuation", .make = make<Punctuation>}};
const Register digits{PreTokenizerKind{.name = "Digits", .make = make<Digits>}};
const Register char_delimiter{
    PreTokenizerKind{.name = "CharDelimiterSplit", .make = make<CharDelimiterSplit>}};
const Register unicode_scripts{
    PreTokenizerKind{.name = "UnicodeScripts", .make = make<UnicodeScripts>}};

}  // namespace
}  // namespace lathe::data::character_cutters
