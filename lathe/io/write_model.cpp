#include "lathe/core/graph_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/copy_tokenizer.h"
#include "lathe/io/directory_text.h"
#include "lathe/io/family_weights.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/model.h"
#include "lathe/io/model_config.h"
#include "lathe/io/new_directory.h"
#include "lathe/io/portable_weights.h"
#include "lathe/io/preprocessor_config.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/storage/storage_hints.h"
#include "lathe/io/weight_directory.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

void write_model_files(const fs::path& directory, const Model& model, const StoredWeights& weights,
                       std::int64_t max_shard_bytes, bool is_compressed = false) {
  write_atomically(directory / "config.json", write_config(model).dump(2) + "\n");
  write_weights(directory, weights, max_shard_bytes);
  write_images(directory, model.images, model.directory);
  if (model.tokenizer)
    for (const auto& [name, contents] : model.tokenizer->files())
      write_text(directory, name, contents, is_compressed);
  else if (!model.directory.empty())
    copy_tokenizer(model.directory, directory, is_compressed);
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
  if (has_text(directory, kGraphName)) return true;
  // Without its graph a checkpoint is damaged, which is worth saying; but other programs write
  // manifests too.
  if (!fs::is_regular_file(directory / kManifestName, error)) return false;
  return MappedFile::open(directory / kManifestName)->text().find(kCheckpointFormat) !=
         std::string_view::npos;
}

void write_huggingface(const fs::path& target, const Model& model, std::int64_t max_shard_bytes) {
  const State weights =
      with_place(model.directory.empty() ? model.family->name : model.directory.string(),
                 [&] { return portable_weights(model); });
  NewDirectory directory(target);
  write_model_files(directory.path(), model, {to_file_layout(*model.family, weights), {}},
                    max_shard_bytes);
  directory.commit();
}

void fill_checkpoint(const fs::path& directory, const Model& model, Storage storage) {
  write_model_files(directory, model,
                    store_weights(to_file_layout(*model.family, model.state),
                                  storage_hints(model.graph, *model.family), storage),
                    kDefaultShardBytes, storage == Storage::Compact);
  write_text(directory, kGraphName, print(model.graph), storage == Storage::Compact);
  Manifest manifest;
  manifest.family = model.family->name;
  manifest.task = model.task;
  manifest.label_names = model.label_names;
  manifest.fresh = model.fresh;
  manifest.files = describe_files(directory, file_names(directory));
  if (!model.masters.empty()) {
    write_safetensors(directory / kMastersName, model.masters);
    manifest.optional_files = describe_files(directory, {kMastersName});
  }
  write_manifest(directory, manifest);
}

void write_checkpoint(const fs::path& target, const Model& model, Storage storage) {
  NewDirectory directory(target);
  fill_checkpoint(directory.path(), model, storage);
  directory.commit();
}

}  // namespace lathe::io
