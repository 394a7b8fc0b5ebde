#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "lathe/io/model.h"

namespace lathe::io {

/// The files that are needed to run a model, with their bytes: weights, graph, configuration,
/// tokenizer, manifest. Not what else lies in its directory: the floats that codes were rounded
/// from, checkpoints, logs.
struct ModelSize {
  std::map<std::string, std::int64_t> files = {};
  std::int64_t bytes() const;
};

/// Measures a model directory; fails when a file that it needs is missing.
ModelSize model_size(const std::filesystem::path& directory);

/// What some of a model's states take in a file of weights.
std::int64_t stored_bytes(const Model& model, std::span<const std::string> states, Storage storage);

/// Measures the checkpoint that a model would be written as, by writing it to a directory of its
/// own that is removed again.
ModelSize checkpoint_size(const Model& model, Storage storage = Storage::Sparse);

}  // namespace lathe::io
