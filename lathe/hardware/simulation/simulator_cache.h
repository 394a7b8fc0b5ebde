#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lathe::hardware {

/// Where compiled models are kept: $LATHE_CACHE, else lathe below $XDG_CACHE_HOME or ~/.cache.
std::filesystem::path simulator_cache();

/// A folder below `parent` that is filled elsewhere and appears under its name whole or not at
/// all, so that two who make the same do not meet. The least recently used neighbours are removed
/// where there are more than a few hundred.
class CacheEntry {
 public:
  CacheEntry(std::filesystem::path parent, std::string name);
  ~CacheEntry();
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  /// True where it is already there; it counts as used now.
  bool exists() const;
  /// An empty folder to fill, removed again unless `commit` is called.
  const std::filesystem::path& begin();
  void commit();

 private:
  std::filesystem::path parent_, folder_, temporary_;
};

/// Where a program lies on PATH; empty if nowhere.
std::filesystem::path program_path(std::string_view name);

}  // namespace lathe::hardware
