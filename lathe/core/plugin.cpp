#include "lathe/core/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <set>

#include "lathe/core/error.h"

namespace lathe {

std::string load_plugin(const std::string& path) {
  // A name without a folder would be looked for in the system's.
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (!std::filesystem::is_regular_file(whole, error))
    fail("plugin {}: there is no such file", path);
  void* const handle = dlopen(whole.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) fail("plugin {}: cannot be loaded: {}", path, dlerror());
  const auto function = reinterpret_cast<PluginFunction>(dlsym(handle, kPluginSymbol));
  if (function == nullptr) fail("plugin {}: it has no function {}", path, kPluginSymbol);
  const Plugin* const plugin = function();
  if (plugin == nullptr || plugin->version != kPluginVersion || plugin->add == nullptr)
    fail("plugin {}: it is of version {}, but {} is needed: build it with this library's headers",
         path, plugin == nullptr ? 0 : plugin->version, kPluginVersion);
  static std::set<const Plugin*> loaded;
  if (!loaded.insert(plugin).second) return plugin->name;
  try {
    plugin->add();
  } catch (const InternalError& clash) {
    fail("plugin {}: it brings a name that exists: {}", path, clash.what());
  }
  return plugin->name;
}

}  // namespace lathe
