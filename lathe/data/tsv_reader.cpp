#include "lathe/core/error.h"
#include "lathe/data/dataset_reader.h"

namespace lathe::data {

std::vector<Row> read_tsv(std::string_view contents, bool labelled) {
  std::vector<Row> rows;
  for (std::int64_t line_number = 1; !contents.empty(); ++line_number) {
    const std::size_t length = contents.find('\n');
    std::string_view line = contents.substr(0, length);
    contents.remove_prefix(length == std::string_view::npos ? contents.size() : length + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::string_view label;
    if (labelled) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string_view::npos)
        fail("{}: has no tab, expected label<TAB>text", line_number);
      label = line.substr(0, tab);
      if (label.empty()) fail("{}: has an empty label, expected label<TAB>text", line_number);
      line.remove_prefix(tab + 1);
    }
    rows.push_back({std::string(line), std::string(label), line_number});
  }
  return rows;
}

}  // namespace lathe::data
