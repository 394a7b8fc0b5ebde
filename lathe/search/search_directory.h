#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lathe/io/directory_lock.h"
#include "lathe/search/search_options.h"

namespace lathe::search {

/// The directory of a search: what it was started with and the results that no study holds, in
/// `results.json`. One process at a time works in it; its threads may share it.
class SearchDirectory {
 public:
  /// Starts a search in `options.out`, or takes up the one that is there; fails when that was
  /// started with other options.
  explicit SearchDirectory(const SearchOptions& options);

  const std::filesystem::path& path() const { return path_; }
  /// A result that was kept under this name, or nothing.
  std::optional<double> find(const std::string& name) const;
  /// Makes results durable.
  void keep(const std::string& name, double value) { keep({{name, value}}); }
  void keep(const std::map<std::string, double>& results);

 private:
  void save() const;

  std::filesystem::path path_;
  std::optional<io::DirectoryLock> lock_;
  mutable std::mutex mutex_;
  nlohmann::json results_;
};

/// The options of the search that is in a directory, with its samplers; fails where there is none.
SearchOptions read_search(const std::filesystem::path& directory);

}  // namespace lathe::search
