#include "lathe/compress/format_sweep.h"

#include <charconv>
#include <optional>

#include "lathe/core/number_format.h"

namespace lathe::compress {
namespace {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

// What braces hold: the variable, or the variable, an operator and a whole number.
std::int64_t evaluate(std::string_view text, std::string_view variable, std::int64_t value) {
  if (text == variable) return value;
  if (text.starts_with(variable) && text.size() > variable.size() + 1) {
    const std::optional<std::int64_t> operand = parse_integer(text.substr(variable.size() + 1));
    const char symbol = text[variable.size()];
    if (operand && symbol == '+') return value + *operand;
    if (operand && symbol == '-') return value - *operand;
    if (operand && symbol == '*') return value * *operand;
    if (operand && symbol == '/' && *operand != 0) return value / *operand;
  }
  fail("{{{}}}: expected {{{}}} or, for example, {{{}/2}}", text, variable, variable);
}

std::string expand(std::string_view text, std::string_view variable, std::int64_t value) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    result += text.substr(0, open);
    if (open == text.npos) break;
    const std::size_t close = text.find('}', open);
    if (close == text.npos) fail("\"{}\": a brace is not closed", text);
    result += fmt::format("{}", evaluate(text.substr(open + 1, close - open - 1), variable, value));
    text.remove_prefix(close + 1);
  }
  return result;
}

std::vector<std::int64_t> parse_values(std::string_view text) {
  constexpr std::int64_t kWidestRange = 1000;
  std::vector<std::int64_t> values;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t dots = item.find("..");
    const std::optional<std::int64_t> first = parse_integer(item.substr(0, dots));
    const std::optional<std::int64_t> last =
        dots == item.npos ? first : parse_integer(item.substr(dots + 2));
    if (!first || !last || *first > *last || *last - *first > kWidestRange)
      fail("\"{}\": expected a whole number or a range such as 1..12", item);
    for (std::int64_t value = *first; value <= *last; ++value) values.push_back(value);
    if (comma == text.npos) return values;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

FormatSweep parse_format_sweep(std::string_view text) {
  if (text == "widths") text = "fixed:{width},{width/2} width=4,6,8,12,16,20,24,28,32";
  if (text == "integer-bits") text = "fixed:{integer_bits+4},4 integer_bits=1..10";
  if (text == "fraction-bits") text = "fixed:{fraction_bits+5},{fraction_bits} fraction_bits=1..27";
  const std::size_t blank = text.find(' ');
  const std::size_t equals = text.find('=', blank == text.npos ? text.size() : blank);
  if (blank == text.npos || equals == text.npos)
    fail(
        "\"{}\": expected widths, integer-bits, fraction-bits, or a format and its values: "
        "\"fixed:{{w}},{{w/2}} w=4,6,8\"",
        text);
  FormatSweep sweep;
  sweep.variable = std::string(text.substr(blank + 1, equals - blank - 1));
  if (sweep.variable.empty()) fail("\"{}\": the variable has no name", text);
  for (const std::int64_t value : parse_values(text.substr(equals + 1))) {
    std::string format = expand(text.substr(0, blank), sweep.variable, value);
    parse_format(format);
    sweep.points.push_back({static_cast<double>(value), std::move(format)});
  }
  return sweep;
}

}  // namespace lathe::compress
