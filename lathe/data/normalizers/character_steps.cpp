// Normalizers that look at one character after the other.
#include "lathe/data/normalizers/character_steps.h"

#include "lathe/core/registry.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/unicode_classes.h"

namespace lathe::data {

void append_lowercase(char32_t character, std::string_view bytes, std::string& result) {
  if (character < 0x80) {
    result += static_cast<char>(character >= 'A' && character <= 'Z' ? character + 32 : character);
  } else if (character == 0x130) {
    result += "i\u0307";  // the only one that becomes two
  } else if (const UChar32 lower = u_tolower(static_cast<UChar32>(character));
             lower == static_cast<UChar32>(character)) {
    result += bytes;
  } else {
    append_utf8(static_cast<char32_t>(lower), result);
  }
}

namespace character_steps {
namespace {

using Json = nlohmann::json;

class Lowercase final : public Normalizer {
 public:
  void normalize(NormalizedText& text) const override {
    replace_characters(text, append_lowercase);
  }
};

class StripAccents final : public Normalizer {
 public:
  void normalize(NormalizedText& text) const override {
    replace_characters(text, [](char32_t c, std::string_view bytes, std::string& result) {
      if (!is_combining_mark(c)) result += bytes;
    });
  }
};

// What SentencePiece's rules for machine translation do to control characters and white space.
class Nmt final : public Normalizer {
 public:
  void normalize(NormalizedText& text) const override {
    replace_characters(text, [](char32_t c, std::string_view bytes, std::string& result) {
      const bool is_removed = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                              c == 0x7F || c == 0x8F || c == 0x9F;
      if (is_removed) return;
      const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                            (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                            c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      if (is_space) {
        result += ' ';
      } else {
        result += bytes;
      }
    });
  }
};

class Strip final : public Normalizer {
 public:
  explicit Strip(const Json& description) {
    read_member(description, "strip_left", left_);
    read_member(description, "strip_right", right_);
  }
  void normalize(NormalizedText& text) const override {
    const char* begin = text.text.data();
    const char* end = begin + text.text.size();
    const char* const all = begin;
    while (left_ && begin != end) {
      const char* next = begin;
      if (!is_white_space(next_code_point(next, end))) break;
      begin = next;
    }
    // The last character that is none, from the left: UTF-8 is read that way.
    const char* last = begin;
    for (const char* next = begin; right_ && next != end;)
      if (!is_white_space(next_code_point(next, end))) last = next;
    if (right_) end = last;
    if (begin != all) text.is_at_start = false;
    text.text = std::string(begin, end);
  }

 private:
  bool left_ = true, right_ = true;
};

template <typename Kind>
std::unique_ptr<const Normalizer> make(const Json& description) {
  if constexpr (std::is_constructible_v<Kind, const Json&>)
    return std::make_unique<Kind>(description);
  else
    return std::make_unique<Kind>();
}

const Register lowercase{NormalizerKind{.name = "Lowercase", .make = make<Lowercase>}};
const Register strip_accents{NormalizerKind{.name = "StripAccents", .make = make<StripAccents>}};
const Register nmt{NormalizerKind{.name = "Nmt", .make = make<Nmt>}};
const Register strip{NormalizerKind{.name = "Strip", .make = make<Strip>}};

}  // namespace
}  // namespace character_steps
}  // namespace lathe::data
