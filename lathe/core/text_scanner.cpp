#include "lathe/core/text_scanner.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace lathe {
namespace {

bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' ||
         c == ':' || c == '-';
}

bool is_name_start(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '"';
}

}  // namespace

std::string name_text(std::string_view name) {
  bool is_bare = !name.empty() && name != "none" && is_name_start(name.front());
  for (const char c : name) is_bare = is_bare && is_name_part(c);
  // A trailing colon would run into the one before a type.
  if (is_bare && name.back() != ':') return std::string(name);
  return to_text(Attribute(std::string(name)));
}

void TextScanner::skip_blanks() {
  while (position_ < text_.size() &&
         std::isspace(static_cast<unsigned char>(text_[position_])) != 0)
    ++position_;
  // "#" opens a comment unless it touches a name, where it counts results.
  if (position_ < text_.size() && text_[position_] == '#' &&
      (position_ == 0 || std::isspace(static_cast<unsigned char>(text_[position_ - 1])) != 0))
    position_ = text_.size();
}

bool TextScanner::at_end() {
  skip_blanks();
  return position_ >= text_.size();
}

bool TextScanner::next_is(std::string_view symbol) {
  skip_blanks();
  return text_.substr(position_).starts_with(symbol);
}

bool TextScanner::take(std::string_view symbol) {
  if (!next_is(symbol)) return false;
  position_ += symbol.size();
  return true;
}

void TextScanner::expect(std::string_view symbol) {
  if (!take(symbol)) fail("expected \"{}\" before \"{}\"", symbol, rest());
}

bool TextScanner::next_is_name() {
  skip_blanks();
  return position_ < text_.size() && is_name_start(text_[position_]);
}

std::string TextScanner::rest() {
  skip_blanks();
  constexpr std::size_t kMost = 40;
  const std::string_view left = text_.substr(position_);
  if (left.empty()) return "end of line";
  return left.size() > kMost ? std::string(left.substr(0, kMost)) + "..." : std::string(left);
}

std::string TextScanner::quoted() {
  std::string result;
  ++position_;
  for (; position_ < text_.size(); ++position_) {
    char c = text_[position_];
    if (c == '"') {
      ++position_;
      return result;
    }
    if (c == '\\' && position_ + 1 < text_.size()) {
      c = text_[++position_];
      if (c == 'n') c = '\n';
    }
    result += c;
  }
  fail("a quote is not closed");
}

std::string TextScanner::name() {
  if (!next_is_name()) fail("expected a name before \"{}\"", rest());
  if (text_[position_] == '"') return quoted();
  const std::size_t start = position_;
  while (position_ < text_.size() && is_name_part(text_[position_])) ++position_;
  return std::string(text_.substr(start, position_ - start));
}

std::int64_t TextScanner::integer() {
  skip_blanks();
  std::int64_t value = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc{}) fail("expected an integer before \"{}\"", rest());
  position_ += static_cast<std::size_t>(end - begin);
  return value;
}

Type TextScanner::type() {
  skip_blanks();
  const std::size_t start = position_;
  while (position_ < text_.size() &&
         std::isalnum(static_cast<unsigned char>(text_[position_])) != 0)
    ++position_;
  const std::string_view dtype_name = text_.substr(start, position_ - start);
  const std::optional<DType> dtype = parse_dtype(dtype_name);
  if (!dtype) fail("expected a type such as f32[B,128], not \"{}\"", text_.substr(start));
  Type type{.dtype = *dtype, .shape = {}};
  expect("[");
  const std::size_t end = text_.find(']', position_);
  if (end == std::string_view::npos) fail("a shape is not closed by \"]\"");
  std::string_view sizes = text_.substr(position_, end - position_);
  position_ = end + 1;
  while (!sizes.empty()) {
    const std::size_t comma = sizes.find(',');
    std::string_view one = sizes.substr(0, comma);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    const std::optional<Size> size = Size::parse(one);
    if (!size) fail("\"{}\" is not a size", one);
    if (size->is_constant() && size->constant() < 0) fail("size {} is negative", one);
    type.shape.push_back(*size);
    if (comma == std::string_view::npos) break;
    sizes.remove_prefix(comma + 1);
    if (sizes.empty()) fail("a shape ends in a comma");
  }
  return type;
}

Attribute TextScanner::attribute() {
  skip_blanks();
  if (next_is("\"")) return quoted();
  if (take("[")) {
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    bool all_integers = true;
    while (!take("]")) {
      if (next_is("[")) fail("a list holds numbers only, not lists");  // and ends the recursion
      const Attribute item = attribute();
      if (const auto* whole = std::get_if<std::int64_t>(&item)) {
        integers.push_back(*whole);
        reals.push_back(static_cast<double>(*whole));
      } else if (const auto* real = std::get_if<double>(&item)) {
        all_integers = false;
        reals.push_back(*real);
      } else {
        fail("a list holds numbers only, not {}", to_text(item));
      }
      if (!next_is("]")) expect(",");
    }
    if (all_integers) return integers;
    return reals;
  }
  const std::size_t start = position_;
  while (position_ < text_.size() &&
         (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 ||
          text_[position_] == '.' || text_[position_] == '-' || text_[position_] == '+'))
    ++position_;
  const std::string_view word = text_.substr(start, position_ - start);
  if (word == "true") return true;
  if (word == "false") return false;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "inf") return kInfinity;
  if (word == "-inf") return -kInfinity;
  if (word == "nan" || word == "-nan") return std::numeric_limits<double>::quiet_NaN();
  const char* const end = word.data() + word.size();
  std::int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(word.data(), end, whole);
      error == std::errc{} && stop == end)
    return whole;
  double real = 0;
  if (const auto [stop, error] = std::from_chars(word.data(), end, real);
      error == std::errc{} && stop == end)
    return real;
  position_ = start;
  fail("expected a value before \"{}\"", rest());
}

Attributes TextScanner::assignments() {
  Attributes result;
  while (next_is_name()) {
    const std::string key = name();
    expect("=");
    if (!result.emplace(key, attribute()).second) fail("{} is given twice", key);
    if (!take(",")) break;
  }
  return result;
}

Attributes TextScanner::attributes() {
  if (!take("{")) return {};
  Attributes result = assignments();
  expect("}");
  return result;
}

}  // namespace lathe
