#include "lathe/experiment/recorded_options.h"

#include "lathe/core/error.h"

namespace lathe::experiment {

namespace fs = std::filesystem;
using nlohmann::json;

std::string absolute_path(const std::string& path) {
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return path;
  const fs::path absolute = fs::canonical(path, error);
  return error ? path : absolute.string();
}

void check_recorded(const json& asked, const json& recorded, const std::string& work,
                    const fs::path& directory) {
  for (const auto& [name, value] : asked.items())
    if (recorded.value(name, json()) != value)
      fail("{} {}: the {} in {} was started with {}", name, value.dump(), work, directory.string(),
           recorded.value(name, json()).dump());
}

}  // namespace lathe::experiment
