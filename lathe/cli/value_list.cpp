#include "lathe/cli/value_list.h"

#include <charconv>
#include <limits>

#include "lathe/cli/text_lines.h"
#include "lathe/core/error.h"

namespace lathe::cli {

namespace {

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r' || letter == ',';
}

float parse_value(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"')
    token = token.substr(1, token.size() - 2);
  if (token == "null") return std::numeric_limits<float>::quiet_NaN();
  if (token.starts_with('+')) token.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error == std::errc::result_out_of_range) fail("beyond what a double holds");
  if (error != std::errc{} || end != token.data() + token.size()) fail("expected a number");
  return static_cast<float>(value);
}

std::int64_t parse_size(std::string_view text, std::string_view shape) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size < 1 || size > 1 << 30)
    fail("--shape {}: expected ROWSxCOLUMNS such as 4x32", shape);
  return size;
}

}  // namespace

ValueList parse_values(std::string_view text, std::string_view place) {
  ValueList list;
  int line = 1;
  int depth = 0;
  std::int64_t row_start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char letter = text[i];
    if (letter == '\n') ++line;
    if (is_blank(letter)) {
      ++i;
    } else if (letter == '[') {
      if (++depth > 2) fail("{}:{}: arrays may be two deep at most", place, line);
      row_start = std::ssize(list.values);
      ++i;
    } else if (letter == ']') {
      if (--depth < 0) fail("{}:{}: \"]\" without a \"[\" before it", place, line);
      const std::int64_t length = std::ssize(list.values) - row_start;
      if (depth == 1) {
        if (list.rows > 0 && length != list.columns)
          fail("{}:{}: row {} has {} values, those before it have {}", place, line, list.rows + 1,
               length, list.columns);
        list.columns = length;
        ++list.rows;
      }
      row_start = std::ssize(list.values);
      ++i;
    } else {
      std::size_t end = i;
      while (end < text.size() && !is_blank(text[end]) && text[end] != '[' && text[end] != ']')
        ++end;
      const std::string_view token = text.substr(i, end - i);
      list.values.push_back(with_place(fmt::format("{}:{}: value {}, \"{}\"", place, line,
                                                   list.values.size() + 1, token.substr(0, 40)),
                                       [&] { return parse_value(token); }));
      i = end;
    }
  }
  if (depth != 0) fail("{}:{}: \"]\" is missing at the end", place, line);
  if (list.values.empty()) fail("{}: holds no values", place);
  if (list.rows == 0 || list.rows * list.columns != std::ssize(list.values)) {
    list.rows = 1;
    list.columns = std::ssize(list.values);
  }
  return list;
}

ValueList read_values(const std::string& path) {
  std::string text;
  read_lines(path, 1024, [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += line + "\n";
  });
  return parse_values(text, path == "-" ? "standard input" : path);
}

void reshape(ValueList& list, std::string_view shape) {
  const std::size_t cross = shape.find('x');
  if (cross == shape.npos) fail("--shape {}: expected ROWSxCOLUMNS such as 4x32", shape);
  const std::int64_t rows = parse_size(shape.substr(0, cross), shape);
  const std::int64_t columns = parse_size(shape.substr(cross + 1), shape);
  if (rows * columns != std::ssize(list.values))
    fail("--shape {}: holds {} values, got {}", shape, rows * columns, list.values.size());
  list.rows = rows;
  list.columns = columns;
}

}  // namespace lathe::cli
