#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::experiment {

/// Fills options from a stage's settings. `each_setting(visit)` calls visit(name, value) for every
/// setting there is; fails on a name that is none and on a value that is not of its kind.
template <typename EachSetting>
void read_settings(const nlohmann::json& settings, const EachSetting& each_setting) {
  std::vector<std::string> names;
  const auto read = [](const nlohmann::json& text, auto& value) { text.get_to(value); };
  each_setting([&]<typename T>(const char* name, T& value) {
    names.emplace_back(name);
    const auto found = settings.find(name);
    if (found == settings.end()) return;
    try {
      if constexpr (requires { value.reset(); })
        read(*found, value.emplace());
      else
        read(*found, value);
    } catch (const nlohmann::json::exception&) {
      fail("{} = {}: is not a value of its kind", name, found->dump());
    }
  });
  for (const auto& [name, value] : settings.items())
    if (std::ranges::find(names, name) == names.end()) throw unknown_name("setting", name, names);
}

}  // namespace lathe::experiment
