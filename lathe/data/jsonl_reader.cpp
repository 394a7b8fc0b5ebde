#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

std::vector<Row> read_jsonl(std::string_view contents, bool labelled) {
  std::vector<Row> rows;
  for (std::int64_t line_number = 1; !contents.empty(); ++line_number) {
    const std::size_t length = contents.find('\n');
    const std::string_view line = contents.substr(0, length);
    contents.remove_prefix(length == std::string_view::npos ? contents.size() : length + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    // JSON must be UTF-8, but one stray byte in a text is no reason to refuse a dataset.
    const auto object = is_utf8(line) ? parse_json(line, "", {}, line_number)
                                      : parse_json(as_utf8(line), "", {}, line_number);
    if (!object.is_object()) fail("{}: is not a JSON object", line_number);
    const auto text = object.find("text");
    if (text == object.end() || !text->is_string())
      fail("{}: has no text, expected {{\"text\": \"...\", \"label\": ...}}", line_number);
    Row row{text->get<std::string>(), "", line_number};
    if (labelled) {
      const auto label = object.find("label");
      if (label == object.end())
        fail("{}: has no label, expected {{\"text\": \"...\", \"label\": ...}}", line_number);
      if (!label->is_string() && !label->is_number_integer())
        fail("{}: label is {}, expected an integer or a text", line_number, label->dump());
      row.label = label->is_string() ? label->get<std::string>() : label->dump();
      if (row.label.empty()) fail("{}: has an empty label", line_number);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace lathe::data
