#include "lathe/experiment/model_list.h"

#include <algorithm>
#include <filesystem>

#include "lathe/core/error.h"
#include "lathe/models/family.h"

namespace lathe::experiment {

std::vector<std::string> model_list(const std::string& text) {
  std::error_code error;
  if (text.find(',') == std::string::npos || std::filesystem::exists(text, error) ||
      models::find_named_model(text))
    return {text};
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) fail("\"{}\": expected models separated by single commas", text);
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace lathe::experiment
