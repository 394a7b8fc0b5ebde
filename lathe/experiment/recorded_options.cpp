#include "lathe/experiment/recorded_options.h"

#include "lathe/core/error.h"
#include "lathe/core/utf8_text.h"

namespace lathe::experiment {

namespace fs = std::filesystem;
using nlohmann::json;

std::string absolute_path(const std::string& path) {
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return path;
  const fs::path absolute = fs::canonical(path, error);
  return error ? path : absolute.string();
}

std::string recorded_path(const std::string& path) {
  return escape_bytes(absolute_path(path));
}

std::string path_of_record(const std::string& recorded) {
  const std::string path = unescape_bytes(recorded);
  std::error_code error;
  return path != recorded && fs::exists(path, error) ? path : recorded;
}

void check_recorded(const json& asked, const json& recorded, const std::string& work,
                    const fs::path& directory) {
  for (const auto& [name, value] : asked.items())
    if (recorded.value(name, json()) != value)
      fail("{} {}: the {} in {} was started with {}", name, value.dump(), work, directory.string(),
           recorded.value(name, json()).dump());
}

}  // namespace lathe::experiment
