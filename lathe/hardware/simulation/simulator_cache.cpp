#include "lathe/hardware/simulation/simulator_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::hardware {

namespace fs = std::filesystem;

fs::path simulator_cache() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const fs::path given = variable("LATHE_CACHE"); !given.empty()) return given;
  if (const fs::path given = variable("XDG_CACHE_HOME"); !given.empty()) return given / "lathe";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".cache" / "lathe";
  return fs::temp_directory_path() / "lathe";
}

CacheEntry::CacheEntry(fs::path parent, std::string name)
    : parent_(std::move(parent)), folder_(parent_ / name) {}

CacheEntry::~CacheEntry() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

bool CacheEntry::exists() const {
  std::error_code ignored;
  if (!fs::exists(folder_, ignored)) return false;
  fs::last_write_time(folder_, fs::file_time_type::clock::now(), ignored);
  return true;
}

const fs::path& CacheEntry::begin() {
  static std::atomic<int> counter = 0;
  temporary_ = parent_ / fmt::format("new-{}-{}", getpid(), counter++);
  std::error_code error;
  fs::create_directories(temporary_, error);
  if (error) fail("{}: cannot be made: {}", temporary_.string(), error.message());
  return temporary_;
}

void CacheEntry::commit() {
  std::error_code error;
  fs::rename(temporary_, folder_, error);
  if (!error)
    temporary_.clear();
  else if (!fs::exists(folder_))  // somebody else's is as good
    fail("{}: cannot be made: {}", folder_.string(), error.message());

  constexpr std::size_t kKept = 400;
  std::vector<std::pair<fs::file_time_type, fs::path>> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent_, error))
    if (!entry.path().filename().string().starts_with("new-"))
      entries.emplace_back(entry.last_write_time(error), entry.path());
  if (entries.size() <= kKept) return;
  std::sort(entries.begin(), entries.end());
  entries.resize(entries.size() - kKept);
  for (const auto& [time, path] : entries) fs::remove_all(path, error);
}

fs::path program_path(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const fs::path candidate = fs::path(folders.substr(0, end)) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return {};
}

}  // namespace lathe::hardware
