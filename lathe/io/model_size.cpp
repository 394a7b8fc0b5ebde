#include "lathe/io/model_size.h"

#include <cstdlib>

#include "lathe/core/error.h"
#include "lathe/data/tokenizer.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/directory_access.h"
#include "lathe/io/family_weights.h"
#include "lathe/io/storage/storage_hints.h"
#include "lathe/io/weight_directory.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

// A directory of its own, removed with everything in it.
class Aside {
 public:
  Aside() {
    std::string pattern = (fs::temp_directory_path() / "lathe-size-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) fail_with_errno(pattern, "create", errno);
    path_ = pattern;
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<std::string> needed_files(const fs::path& directory) {
  std::vector<std::string> names;
  if (is_checkpoint(directory)) {
    for (const auto& [name, file] : read_manifest(directory).files) names.push_back(name);
    names.emplace_back(kManifestName);
    return names;
  }
  names = weight_files(directory);
  names.emplace_back("config.json");
  std::error_code error;
  for (const std::string& name : data::all_tokenizer_files())
    if (fs::is_regular_file(directory / name, error)) names.push_back(name);
  return names;
}

}  // namespace

std::int64_t ModelSize::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, bytes] : files) total += bytes;
  return total;
}

ModelSize model_size(const fs::path& directory) {
  ModelSize result;
  for (const std::string& name : needed_files(directory))
    result.files[name] = static_cast<std::int64_t>(
        regular_file_size(open_beneath(directory, name), directory / name));
  return result;
}

std::int64_t stored_bytes(const Model& model, std::span<const std::string> states,
                          Storage storage) {
  State some;
  for (const std::string& name : states) some.emplace(name, model.state.at(name));
  const StoredWeights stored = store_weights(to_file_layout(*model.family, some),
                                             storage_hints(model.graph, *model.family), storage);
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : stored.tensors) bytes += tensor.num_bytes();
  return bytes;
}

ModelSize checkpoint_size(const Model& model, Storage storage) {
  const Aside aside;
  Model written = model;
  written.masters.clear();
  fill_checkpoint(aside.path(), written, storage);
  return model_size(aside.path());
}

}  // namespace lathe::io
