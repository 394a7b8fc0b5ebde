#include <unistd.h>

#include <utility>

#include "lathe/core/graph_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/model.h"
#include "lathe/io/model_config.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/weight_directory.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

// A directory that appears under its name whole or not at all: filled aside, then renamed.
class NewDirectory {
 public:
  explicit NewDirectory(const fs::path& target) : target_(target) {
    // "new/" means "new": with an empty last part, the parent would be the target itself.
    if (!target_.has_filename()) target_ = target_.parent_path();
    std::error_code error;
    if (fs::exists(target_, error)) fail("{}: exists already", target_.string());
    const fs::path parent = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    fs::create_directories(parent, error);
    if (error) fail("{}: cannot be created: {}", parent.string(), error.message());
    aside_ = target_;
    aside_ += fmt::format(".tmp-{}", ::getpid());
    const bool is_new = fs::create_directory(aside_, error);
    if (error) fail("{}: cannot be created: {}", aside_.string(), error.message());
    if (!is_new) fail("{}: exists already: remove it", std::exchange(aside_, {}).string());
  }
  ~NewDirectory() {
    std::error_code ignored;
    if (!aside_.empty()) fs::remove_all(aside_, ignored);
  }
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  const fs::path& path() const { return aside_; }
  void commit() {
    sync_directory(aside_);
    std::error_code error;
    fs::rename(aside_, target_, error);
    if (error)
      fail("{}: cannot be renamed from {}: {}", target_.string(), aside_.string(), error.message());
    aside_.clear();
    sync_directory(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
  }

 private:
  fs::path target_, aside_;
};

void write_model_files(const fs::path& directory, const Model& model,
                       std::int64_t max_shard_bytes) {
  write_atomically(directory / "config.json", write_config(model).dump(2) + "\n");
  write_weights(directory, model.state, max_shard_bytes);
  if (model.tokenizer)
    for (const auto& [name, contents] : model.tokenizer->files())
      write_atomically(directory / name, contents);
  if (model.directory.empty()) return;
  for (const std::string& name : data::all_tokenizer_files()) {
    std::error_code error;
    const fs::path source = model.directory / name;
    if (!fs::is_regular_file(source, error)) continue;
    write_atomically(directory / name, MappedFile::open(source)->text());
  }
}

std::vector<std::string> file_names(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace

bool is_checkpoint(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / "graph.txt", error)) return true;
  // Without its graph a checkpoint is damaged, which is worth saying; but other programs write
  // manifests too.
  if (!fs::is_regular_file(directory / kManifestName, error)) return false;
  return MappedFile::open(directory / kManifestName)->text().find(kCheckpointFormat) !=
         std::string_view::npos;
}

void write_huggingface(const fs::path& target, const Model& model, std::int64_t max_shard_bytes) {
  NewDirectory directory(target);
  write_model_files(directory.path(), model, max_shard_bytes);
  directory.commit();
}

void write_checkpoint(const fs::path& target, const Model& model) {
  NewDirectory directory(target);
  write_model_files(directory.path(), model, kDefaultShardBytes);
  write_atomically(directory.path() / "graph.txt", print(model.graph));
  Manifest manifest;
  manifest.family = model.family->name;
  manifest.task = model.task;
  manifest.label_names = model.label_names;
  add_files(manifest, directory.path(), file_names(directory.path()));
  write_manifest(directory.path(), manifest);
  if (!model.masters.empty()) write_safetensors(directory.path() / kMastersName, model.masters);
  directory.commit();
}

}  // namespace lathe::io
