// SPLIT.txt: a text in each line, for models of language, which need no labels.
#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/data/columns.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/text_contents.h"

namespace lathe::data::plain_texts {
namespace {

std::optional<std::filesystem::path> find(const std::string& directory, const std::string& split) {
  return find_split_file(directory, split, ".txt");
}

bool has_split(const std::string& directory, const std::string& split) {
  return find(directory, split).has_value();
}

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions&,
             const ShouldStop&) {
  const std::filesystem::path path = *find(directory, split);
  const TextContents contents(path);
  std::string_view rest = without_byte_order_mark(contents.view());
  Dataset dataset;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) dataset.examples.push_back({std::string(line), kNoLabel});
  }
  if (dataset.examples.empty()) fail("{}: is empty, expected at least one example", path.string());
  return dataset;
}

const Register registration{DataKind{
    .name = "plain-texts",
    .summary = "a text in each line of a .txt that is not empty, without labels",
    .reads = Reads::Text,
    .looks_for = "SPLIT.txt",
    .has_split = has_split,
    .load = load,
}};

}  // namespace
}  // namespace lathe::data::plain_texts
