#include "lathe/search/search_directory.h"

#include "lathe/core/error.h"
#include "lathe/experiment/recorded_options.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/json_file.h"
#include "lathe/io/output_directory.h"

namespace lathe::search {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResults = "results.json";
constexpr const char* kKind = "lathe-search";

}  // namespace

SearchDirectory::SearchDirectory(const SearchOptions& options) : path_(options.out) {
  std::error_code error;
  if (options.replaces || (fs::exists(path_) && io::recognized_as(path_) != "a search"))
    io::clear_output_directory(path_, options.replaces);
  fs::create_directories(path_, error);
  if (error) fail("{}: cannot be created: {}", path_.string(), error.message());
  lock_.emplace(path_);
  if (fs::exists(path_ / kResults, error)) {
    results_ = io::read_json(path_ / kResults);
    // Options that came to the program later had their defaults before.
    nlohmann::json recorded = to_json(SearchOptions{});
    recorded.update(results_.value("configuration", nlohmann::json::object()));
    experiment::check_recorded(to_json(options), recorded, "search", path_);
    results_["configuration"] = std::move(recorded);
  } else {
    results_ = {{"kind", kKind},
                {"configuration", to_json(options)},
                {"results", nlohmann::json::object()}};
  }
  // Where its trials are; more samplers may be compared later.
  results_["samplers"] = options.samplers;
  results_["storage"] = options.storage;
  results_["study"] = options.study;
  save();
}

std::optional<double> SearchDirectory::find(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = results_["results"].find(name);
  return found == results_["results"].end() ? std::nullopt : std::optional(found->get<double>());
}

void SearchDirectory::keep(const std::map<std::string, double>& results) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, value] : results) results_["results"][name] = value;
  save();
}

void SearchDirectory::save() const {
  io::write_atomically(path_ / kResults, results_.dump(2) + "\n");
}

SearchOptions read_search(const fs::path& directory) {
  if (io::recognized_as(directory) != "a search")
    fail("{}: is not the directory of a search", directory.string());
  const nlohmann::json results = io::read_json(directory / kResults);
  SearchOptions options;
  take_recorded(options, results.value("configuration", nlohmann::json::object()));
  options.samplers = results.value("samplers", std::vector<std::string>());
  options.storage = results.value("storage", "");
  options.study = results.value("study", "");
  options.out = directory;
  return options;
}

}  // namespace lathe::search
