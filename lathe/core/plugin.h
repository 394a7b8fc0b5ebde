#pragma once

#include <cstdint>
#include <string>

namespace lathe {

/// Raised when a record that plugins fill in (Op, Pass, CudaKernel, ...) changes: a plugin is built
/// with the headers of the library that loads it.
inline constexpr std::int32_t kPluginVersion = 1;

/// A shared library with records of a user's own: ops, passes, number formats, kernels for a
/// device. It has one symbol,
///
///     extern "C" const lathe::Plugin* lathe_plugin() {
///       static const lathe::Plugin plugin{.name = "soft_clip", .add = add_records};
///       return &plugin;
///     }
///
/// and `add_records` puts what it brings into the registries: `Registry<Op>::instance().add(...)`.
struct Plugin {
  std::int32_t version = kPluginVersion;
  const char* name = "";
  void (*add)() = nullptr;
};
using PluginFunction = const Plugin* (*)();
inline constexpr const char* kPluginSymbol = "lathe_plugin";

/// Loads a plugin for the rest of the process and adds its records; says what it is called. One
/// that is there already is not added again. To be called before records are used, by one thread.
/// Fails in one line where the file is no plugin, is of another version, or brings a name that
/// exists.
std::string load_plugin(const std::string& path);

}  // namespace lathe
