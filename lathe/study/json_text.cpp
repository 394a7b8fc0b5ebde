#include "lathe/study/json_text.h"

#include <cmath>
#include <limits>

#include "lathe/core/json_reader.h"

namespace lathe::study {
namespace {

using nlohmann::json;

// An attribute may nest deeper than a configuration.
constexpr JsonLimits kLimits{.max_depth = 200};

constexpr std::string_view kNan = "NaN";
constexpr std::string_view kInfinityWord = "Infinity";
constexpr std::string_view kMinusInfinity = "-Infinity";

// The parser knows no word for a number that is not finite, so the words go through it as strings
// that begin with a mark which the text has nowhere else.
struct MarkedText {
  std::string text;
  std::string mark;
  bool has_marks = false;
};

std::string unused_mark(std::string_view text) {
  std::string mark = "number ";
  while (text.find(mark) != std::string_view::npos) mark.insert(0, "~");
  return mark;
}

MarkedText mark_words(std::string_view text) {
  MarkedText result{.text = {}, .mark = unused_mark(text)};
  result.text.reserve(text.size());
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      result.text += c;
      if (c == '\\' && i + 1 < text.size()) result.text += text[++i];
      if (c == '"') is_in_string = false;
      continue;
    }
    if (c == '"') is_in_string = true;
    bool is_word = false;
    for (const std::string_view word : {kNan, kInfinityWord, kMinusInfinity}) {
      if (text.substr(i, word.size()) != word) continue;
      result.text += fmt::format("\"{}{}\"", result.mark, word);
      i += word.size() - 1;
      is_word = result.has_marks = true;
      break;
    }
    if (!is_word) result.text += c;
  }
  return result;
}

void unmark(json& value, const std::string& mark) {
  if (value.is_structured()) {
    for (json& each : value) unmark(each, mark);
    return;
  }
  if (!value.is_string()) return;
  const std::string& text = value.get_ref<const std::string&>();
  if (!text.starts_with(mark)) return;
  const std::string_view word = std::string_view(text).substr(mark.size());
  const double infinity = std::numeric_limits<double>::infinity();
  if (word == kNan)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (word == kInfinityWord)
    value = infinity;
  else if (word == kMinusInfinity)
    value = -infinity;
}

void write(const json& value, std::string& out) {
  switch (value.type()) {
    case json::value_t::array: {
      out += '[';
      const char* separator = "";
      for (const json& each : value) {
        out += separator;
        write(each, out);
        separator = ", ";
      }
      out += ']';
      return;
    }
    case json::value_t::object: {
      out += '{';
      const char* separator = "";
      for (const auto& [key, each] : value.items()) {
        out += separator;
        write(json(key), out);
        out += ": ";
        write(each, out);
        separator = ", ";
      }
      out += '}';
      return;
    }
    case json::value_t::number_float: {
      const double number = value.get<double>();
      if (std::isnan(number))
        out += kNan;
      else if (std::isinf(number))
        out += number > 0 ? kInfinityWord : kMinusInfinity;
      else
        out += value.dump();
      return;
    }
    default:
      // Text from elsewhere need not be UTF-8; the bytes that are not are replaced.
      out += value.dump(-1, ' ', true, json::error_handler_t::replace);
  }
}

}  // namespace

json parse_json(std::string_view text) {
  const MarkedText marked = mark_words(text);
  json value = lathe::parse_json(marked.text, "", kLimits);
  if (marked.has_marks) unmark(value, marked.mark);
  return value;
}

std::string to_json_text(const json& value) {
  std::string out;
  write(value, out);
  return out;
}

}  // namespace lathe::study
