#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

std::string scalar_label(const Json& value, std::int64_t line) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  fail("{}: label is {}, expected a text, a number or a list of them", line, value.dump());
}

bool is_true(const Json& value, const std::string& key, std::int64_t line) {
  if (value == true || value == 1) return true;
  if (value == false || value == 0) return false;
  fail("{}: {} is {}, expected 1 or 0: several label columns say which labels a row has", line, key,
       value.dump());
}

// Keys by which every row is read, as the first object has them.
struct Keys {
  std::vector<std::string> text, label;
};

Keys choose_keys(const Json& object, const ColumnOptions& options, bool labelled,
                 std::int64_t line) {
  const std::vector<std::string> all = keys_of(object);
  try {
    const ColumnChoice choice = choose_columns(all, options, labelled);
    Keys keys;
    for (const std::size_t column : choice.text) keys.text.push_back(all[column]);
    for (const std::size_t column : choice.label) keys.label.push_back(all[column]);
    return keys;
  } catch (const UserError& wrong) {
    throw UserError(fmt::format("{}: {}", line, wrong.message()), wrong.hint());
  }
}

const Json& at(const Json& object, const std::string& key, std::int64_t line) {
  const auto found = object.find(key);
  if (found == object.end())
    fail("{}: has no {}, but the keys {}", line, key, fmt::join(keys_of(object), ", "));
  return *found;
}

std::string text_at(const Json& object, const std::string& key, std::int64_t line) {
  const Json& text = at(object, key, line);
  if (!text.is_string()) fail("{}: {} is {}, expected a text", line, key, text.dump());
  return text.get<std::string>();
}

void set_label(const Json& object, const std::vector<std::string>& keys, Row& row) {
  const auto add = [&](const std::string& label) {
    if (!row.label.empty()) row.label += kBetweenLabels;
    row.label += label;
  };
  if (keys.size() > 1) {
    row.has_label_list = true;
    for (const std::string& key : keys)
      if (is_true(at(object, key, row.line), key, row.line)) add(key);
    return;
  }
  const Json& label = at(object, keys[0], row.line);
  row.has_label_list = label.is_array();
  if (row.has_label_list) {
    for (const Json& each : label) add(scalar_label(each, row.line));
    return;
  }
  row.label = scalar_label(label, row.line);
  if (row.label.empty()) fail("{}: has an empty label", row.line);
}

}  // namespace

void read_jsonl(std::string_view contents, const ColumnOptions& columns, bool labelled,
                const TakeRow& take) {
  contents = without_byte_order_mark(contents);
  Keys keys;
  for (std::int64_t line_number = 1; !contents.empty(); ++line_number) {
    const std::size_t length = contents.find('\n');
    const std::string_view line = contents.substr(0, length);
    contents.remove_prefix(length == std::string_view::npos ? contents.size() : length + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    // JSON must be UTF-8, but one stray byte in a text is no reason to refuse a dataset.
    const auto object = is_utf8(line) ? parse_json(line, "", {}, line_number)
                                      : parse_json(as_utf8(line), "", {}, line_number);
    if (!object.is_object()) fail("{}: is not a JSON object", line_number);
    if (keys.text.empty()) keys = choose_keys(object, columns, labelled, line_number);
    Row row{.text = text_at(object, keys.text[0], line_number), .line = line_number};
    row.is_pair = keys.text.size() > 1;
    if (row.is_pair) row.second = text_at(object, keys.text[1], line_number);
    if (labelled) set_label(object, keys.label, row);
    take(std::move(row));
  }
}

}  // namespace lathe::data
