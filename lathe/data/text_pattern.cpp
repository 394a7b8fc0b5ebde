#include "lathe/data/text_pattern.h"

#include <unicode/regex.h>
#include <unicode/utext.h>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/gpt2_split.h"
#include "lathe/data/llama3_split.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using Take = std::function<void(TextPattern::Match)>;

class LiteralPattern final : public TextPattern {
 public:
  explicit LiteralPattern(std::string text) : text_(std::move(text)) {}
  void find(std::string_view text, const Take& take) const override {
    if (text_.empty()) return;
    for (std::size_t at = 0; (at = text.find(text_, at)) != text.npos; at += text_.size())
      take({at, at + text_.size()});
  }

 private:
  std::string text_;
};

// One character, so many times or more: " {2,}".
class RunPattern final : public TextPattern {
 public:
  RunPattern(char byte, std::size_t least) : byte_(byte), least_(least) {}
  void find(std::string_view text, const Take& take) const override {
    for (std::size_t at = 0; (at = text.find(byte_, at)) != text.npos;) {
      const std::size_t end = std::min(text.find_first_not_of(byte_, at), text.size());
      if (end - at >= least_) take({at, end});
      at = end;
    }
  }

 private:
  char byte_;
  std::size_t least_;
};

// An expression that leaves nothing of a text out, cut by a scanner.
class ScannedPattern final : public TextPattern {
 public:
  using PieceLength = std::size_t (*)(std::string_view text);
  explicit ScannedPattern(PieceLength piece_length) : piece_length_(piece_length) {}
  void find(std::string_view text, const Take& take) const override {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = piece_length_(text.substr(at));
      take({at, at + length});
      at += length;
    }
  }

 private:
  PieceLength piece_length_;
};

// What the engine of the reference (Oniguruma) takes for white space and for words: ICU's own
// classes differ in a few characters.
constexpr std::string_view kSpaces = "\\p{White_Space}";
constexpr std::string_view kWords =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE";

// Writes classes out, which may stand inside of brackets as well as outside.
std::string with_unicode_classes(std::string_view expression) {
  std::string result;
  bool is_in_brackets = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '[') is_in_brackets = true;
    if (c == ']') is_in_brackets = false;
    if (c != '\\' || i + 1 == expression.size()) {
      result += c;
      continue;
    }
    const char kind = expression[++i];
    if (kind == 's' || kind == 'S') {
      result += fmt::format("[{}{}]", kind == 'S' ? "^" : "", kSpaces);
    } else if (kind == 'w' || kind == 'W') {
      result += fmt::format("[{}{}]", kind == 'W' ? "^" : "", kWords);
    } else if ((kind == 'b' || kind == 'B') && !is_in_brackets) {
      const std::string_view here = kind == 'b' ? "!" : "=", there = kind == 'b' ? "=" : "!";
      result += fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", kWords, here, there);
    } else {
      result += '\\';
      result += kind;
    }
  }
  return result;
}

class IcuPattern final : public TextPattern {
 public:
  explicit IcuPattern(const std::string& source) : source_(source) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError where{};
    pattern_.reset(icu::RegexPattern::compile(
        icu::UnicodeString::fromUTF8(with_unicode_classes(source)), 0, where, status));
    if (U_FAILURE(status))
      fail("the expression {} cannot be read: {}", quote_text(source), u_errorName(status));
  }

  void find(std::string_view text, const Take& take) const override {
    UErrorCode status = U_ZERO_ERROR;
    UText input = UTEXT_INITIALIZER;
    utext_openUTF8(&input, text.data(), static_cast<std::int64_t>(text.size()), &status);
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern_->matcher(status));
    if (U_SUCCESS(status)) {
      matcher->reset(&input);
      // Some thousand milliseconds for a text of any size, and 8 MB to backtrack in.
      matcher->setTimeLimit(5000, status);
      matcher->setStackLimit(8 << 20, status);
      while (matcher->find(status) && U_SUCCESS(status)) {
        const auto begin = static_cast<std::size_t>(matcher->start64(status));
        const auto end = static_cast<std::size_t>(matcher->end64(status));
        if (end > begin) take({begin, end});
      }
    }
    utext_close(&input);
    if (U_FAILURE(status))
      fail("the expression {} cannot be matched with a text of {} bytes: {}", quote_text(source_),
           text.size(), u_errorName(status));
  }

 private:
  std::string source_;
  std::unique_ptr<const icu::RegexPattern> pattern_;
};

std::unique_ptr<const TextPattern> make_expression(const std::string& expression) {
  if (expression == " {2,}") return std::make_unique<RunPattern>(' ', 2);
  if (expression == kGpt2Expression) return std::make_unique<ScannedPattern>(gpt2_piece_length);
  if (expression == kLlama3Expression)
    return std::make_unique<ScannedPattern>(
        [](std::string_view text) { return llama3_piece_length(text, 3); });
  if (expression == kQwen2Expression)
    return std::make_unique<ScannedPattern>(
        [](std::string_view text) { return llama3_piece_length(text, 1); });
  return std::make_unique<IcuPattern>(expression);
}

}  // namespace

std::unique_ptr<const TextPattern> read_pattern(const Json& object, const char* key) {
  const Json* const pattern = member(object, key);
  if (!pattern) fail("has no {}", key);
  std::string text;
  // Older files write a literal as it is.
  if (pattern->is_string()) return std::make_unique<LiteralPattern>(pattern->get<std::string>());
  if (member(*pattern, "String")) {
    read_member(*pattern, "String", text);
    return std::make_unique<LiteralPattern>(std::move(text));
  }
  if (!member(*pattern, "Regex")) fail("{} is neither a String nor a Regex", key);
  read_member(*pattern, "Regex", text);
  return with_place(key, [&] { return make_expression(text); });
}

}  // namespace lathe::data
