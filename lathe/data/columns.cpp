#include "lathe/data/columns.h"

#include <algorithm>
#include <optional>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

using Names = std::vector<std::string>;

const Names kTexts = {"text", "review", "sentence"};
const std::vector<Names> kPairs = {{"sentence1", "sentence2"},
                                   {"premise", "hypothesis"},
                                   {"question1", "question2"},
                                   {"text_a", "text_b"}};
const Names kLabels = {"label",    "sentiment", "labels", "class", "target",
                       "category", "score",     "rating", "stars"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// As it is written, else in any case.
std::optional<std::size_t> find(const Names& columns, const std::string& name) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] == name) return i;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (lower(columns[i]) == lower(name)) return i;
  return std::nullopt;
}

// A name may hold the comma that lies between names.
std::optional<std::size_t> find_whole(const Names& columns, const Names& names) {
  return names.size() < 2 ? std::nullopt : find(columns, fmt::format("{}", fmt::join(names, ",")));
}

// All of these, or none.
std::vector<std::size_t> find_all(const Names& columns, const Names& names) {
  if (const auto whole = find_whole(columns, names)) return {*whole};
  std::vector<std::size_t> found;
  for (const std::string& name : names)
    if (const auto at = find(columns, name)) found.push_back(*at);
  if (found.size() != names.size()) found.clear();
  return found;
}

std::vector<std::size_t> usual_texts(const Names& columns) {
  for (const std::string& name : kTexts)
    if (const auto at = find(columns, name)) return {*at};
  for (const Names& pair : kPairs)
    if (auto found = find_all(columns, pair); !found.empty()) return found;
  return {};
}

std::vector<std::size_t> usual_labels(const Names& columns) {
  for (const std::string& name : kLabels)
    if (const auto at = find(columns, name)) return {*at};
  return {};
}

std::vector<std::size_t> require_all(const Names& columns, const Names& names, const char* option) {
  if (const auto whole = find_whole(columns, names)) return {*whole};
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const auto at = find(columns, name);
    if (!at) fail("{} {}: the columns are {}", option, name, fmt::join(columns, ", "));
    found.push_back(*at);
  }
  return found;
}

}  // namespace

Header parse_header(std::string_view name) {
  if (name == "auto") return Header::Auto;
  if (name == "yes") return Header::Yes;
  if (name == "no") return Header::No;
  throw unknown_name("header", name, {"auto", "no", "yes"});
}

std::string_view name(Header header) {
  return header == Header::Auto ? "auto" : header == Header::Yes ? "yes" : "no";
}

ColumnChoice choose_columns(const Names& columns, const ColumnOptions& options, bool labelled) {
  if (options.text.size() > 2 && !find_whole(columns, options.text))
    fail("text-column {}: expected one column, or two for pairs of texts",
         fmt::join(options.text, ","));
  ColumnChoice choice;
  choice.text = require_all(columns, options.text, "text-column");
  if (choice.text.empty()) choice.text = find_all(columns, options.known_text);
  if (choice.text.empty()) choice.text = usual_texts(columns);
  if (choice.text.empty())
    throw UserError(fmt::format("the columns are {}: expected one named {}",
                                fmt::join(columns, ", "), fmt::join(kTexts, ", ")),
                    "text-column NAME says which holds the texts");
  if (!labelled) return choice;
  choice.label = require_all(columns, options.label, "label-column");
  if (choice.label.empty()) choice.label = find_all(columns, options.known_label);
  if (choice.label.empty()) choice.label = usual_labels(columns);
  if (choice.label.empty())
    throw UserError(fmt::format("the columns are {}: expected one named {}",
                                fmt::join(columns, ", "), fmt::join(kLabels, ", ")),
                    "label-column NAME says which holds the labels");
  for (const std::size_t text : choice.text)
    if (std::ranges::count(choice.label, text) > 0)
      fail("the column {} cannot be text and label: expected two columns", columns[text]);
  return choice;
}

bool is_header(const Names& fields, const ColumnOptions& options, bool labelled) {
  if (options.header != Header::Auto) return options.header == Header::Yes;
  const auto is_number = [](const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
  };
  for (const Names* names : {&options.text, &options.label})
    if (!names->empty() && !std::ranges::all_of(*names, is_number)) return true;
  const bool has_text =
      !find_all(fields, options.known_text).empty() || !usual_texts(fields).empty();
  const bool has_label =
      !find_all(fields, options.known_label).empty() || !usual_labels(fields).empty();
  return has_text && (has_label || !labelled);
}

Names numbered_columns(std::size_t count) {
  Names names;
  for (std::size_t i = 1; i <= count; ++i) names.push_back(std::to_string(i));
  return names;
}

Names split_tabs(std::string_view line) {
  Names fields;
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.emplace_back(line.substr(0, tab));
    if (tab == line.npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace lathe::data
