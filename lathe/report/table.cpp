#include "lathe/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lathe/core/error.h"
#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Stands where a number is missing.
bool is_blank(std::string_view cell) {
  return cell.empty() || cell == "-" || cell == "–" || cell == "—";
}

// "12", "-1,024.5", "3.1e-05", "87.1 %", "12 ms", "2.3x", "inf", "1.2 ± 0.3".
bool is_number(std::string_view cell) {
  if (cell == "inf" || cell == "-inf" || cell == "nan") return true;
  std::size_t at = 0;
  if (at < cell.size() && (cell[at] == '-' || cell[at] == '+')) ++at;
  if (at >= cell.size() || !(is_digit(cell[at]) || cell[at] == '.')) return false;
  while (at < cell.size() && (is_digit(cell[at]) || cell[at] == '.' || cell[at] == ',')) ++at;
  if (at + 1 < cell.size() && cell[at] == 'e' &&
      (is_digit(cell[at + 1]) || cell[at + 1] == '-' || cell[at + 1] == '+')) {
    at += 2;
    while (at < cell.size() && is_digit(cell[at])) ++at;
  }
  std::string_view unit = cell.substr(at);
  const bool is_apart = unit.starts_with(' ');
  if (is_apart) unit.remove_prefix(1);
  if (unit.starts_with("± ")) return is_number(unit.substr(std::string_view("± ").size()));
  const bool has_digit = std::any_of(unit.begin(), unit.end(), is_digit);
  return num_characters(unit) <= 8 && !has_digit && unit.find(' ') == std::string_view::npos;
}

std::string aligned(std::string_view text, std::size_t width, bool to_the_right) {
  const std::string blanks(width - std::min(width, num_characters(text)), ' ');
  return to_the_right ? blanks + std::string(text) : std::string(text) + blanks;
}

// A cell of a Markdown table: a bar would end it, and a tag would be taken for one.
std::string markdown_cell(std::string_view text) {
  std::string result;
  for (const char c : printable_line(text)) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '[' || c == ']') result += '\\';
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

}  // namespace

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {
  check(!headers_.empty(), "a table to have columns");
}

Table& Table::row(std::vector<std::string> cells) {
  check(cells.size() == headers_.size(), "a row to have one cell for each header");
  rows_.push_back(std::move(cells));
  return *this;
}

bool Table::is_numeric(std::size_t column) const {
  bool has_number = false;
  for (const auto& cells : rows_) {
    if (is_blank(cells[column])) continue;
    if (!is_number(cells[column])) return false;
    has_number = true;
  }
  return has_number;
}

std::string Table::to_text() const {
  std::vector<std::vector<std::string>> lines = {headers_};
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<std::size_t> widths(headers_.size(), 0);
  for (auto& cells : lines)
    for (std::size_t column = 0; column < cells.size(); ++column) {
      cells[column] = printable_line(cells[column]);
      widths[column] = std::max(widths[column], num_characters(cells[column]));
    }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line;
    for (std::size_t column = 0; column < widths.size(); ++column)
      line +=
          (column == 0 ? "" : "  ") + aligned(lines[i][column], widths[column], is_numeric(column));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (i > 0) continue;
    for (std::size_t column = 0; column < widths.size(); ++column)
      text += (column == 0 ? "" : "  ") + std::string(widths[column], '-');
    text += "\n";
  }
  return text;
}

std::string Table::to_markdown() const {
  std::string text = "|";
  for (const std::string& header : headers_) text += " " + markdown_cell(header) + " |";
  text += "\n|";
  for (std::size_t column = 0; column < headers_.size(); ++column)
    text += is_numeric(column) ? " ---: |" : " --- |";
  text += "\n";
  for (const auto& cells : rows_) {
    text += "|";
    for (const std::string& cell : cells) text += " " + markdown_cell(cell) + " |";
    text += "\n";
  }
  return text;
}

namespace {

// Marks where a long name may be broken: behind the dots and strokes of a path.
std::string breakable(std::string_view cell) {
  std::string text;
  std::size_t since = 0;
  for (const char c : escape_markup(cell)) {
    text += c;
    ++since;
    if ((c == '.' || c == '_' || c == '/' || c == ',') && since > 6) {
      text += "<wbr>";
      since = 0;
    }
    if (c == ' ') since = 0;
  }
  return text;
}

// A cell of a sentence and more: beside columns of numbers it would be left a word's width.
constexpr std::size_t kLongText = 80;

std::string_view class_of(bool is_number, std::string_view cell) {
  if (is_number) return " class=\"number\"";
  return cell.size() > kLongText ? " class=\"long\"" : "";
}

}  // namespace

std::string Table::to_html() const {
  const auto line = [&](const std::vector<std::string>& cells, std::string_view tag) {
    std::string text = "<tr>";
    for (std::size_t column = 0; column < cells.size(); ++column)
      text +=
          fmt::format("<{0}{1}>{2}</{0}>", tag, class_of(is_numeric(column), cells[column]),
                      is_numeric(column) ? escape_markup(cells[column]) : breakable(cells[column]));
    return text + "</tr>\n";
  };
  std::string text = "<table>\n<thead>\n" + line(headers_, "th") + "</thead>\n<tbody>\n";
  for (const auto& cells : rows_) text += line(cells, "td");
  return text + "</tbody>\n</table>\n";
}

}  // namespace lathe::report
