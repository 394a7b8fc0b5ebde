#include "lathe/io/write_elsewhere.h"

#include "lathe/io/atomic_file.h"
#include "lathe/io/family_weights.h"
#include "lathe/io/model_config.h"
#include "lathe/io/new_directory.h"
#include "lathe/io/portable_weights.h"
#include "lathe/io/preprocessor_config.h"
#include "lathe/io/weight_directory.h"
#include "lathe/models/other_names.h"

namespace lathe::io {

void write_elsewhere(const std::filesystem::path& target, const Model& model,
                     std::string_view library, std::int64_t max_shard_bytes) {
  if (!models::has_names_in(*model.family, library))
    fail("{} does not name the tensors of {} models", library, model.family->name);
  const State own =
      with_place(model.directory.empty() ? model.family->name : model.directory.string(),
                 [&] { return to_file_layout(*model.family, portable_weights(model)); });
  State weights;
  for (const auto& [name, tensor] : own)
    weights[models::name_elsewhere(*model.family, name)] = tensor;
  NewDirectory directory(target);
  write_atomically(directory.path() / "config.json", write_config(model).dump(2) + "\n");
  write_weights(directory.path(), weights, max_shard_bytes);
  write_images(directory.path(), model.images, model.directory);
  directory.commit();
}

}  // namespace lathe::io
