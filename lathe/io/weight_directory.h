#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lathe/core/tensor.h"
#include "lathe/io/storage/stored_weights.h"

namespace lathe::io {

/// The shard size that Hugging Face writes by default.
inline constexpr std::int64_t kDefaultShardBytes = 50'000'000'000;

/// Reads the weights of a Hugging Face or Lathe model directory: `model.safetensors`, the shards
/// that `model.safetensors.index.json` lists, or the same as `pytorch_model.bin`. Tensors that are
/// stored as they are view the files.
State read_weights(const std::filesystem::path& directory);

/// The same as the files hold them.
StoredWeights read_stored_weights(const std::filesystem::path& directory);

/// The names of the files that `read_weights` reads, sorted.
std::vector<std::string> weight_files(const std::filesystem::path& directory);

/// Writes weights into an existing directory as one file, or as shards of at most `max_shard_bytes`
/// of data (a larger tensor is a shard of its own) and their index. Weight files of an earlier
/// write that would contradict these are removed once the new ones are in place.
///
/// Each file appears whole or not at all; for a set of shards as a whole, write to a new directory
/// and rename it.
void write_weights(const std::filesystem::path& directory, const StoredWeights& weights,
                   std::int64_t max_shard_bytes = kDefaultShardBytes);
/// Writes every tensor as it is.
void write_weights(const std::filesystem::path& directory, const State& weights,
                   std::int64_t max_shard_bytes = kDefaultShardBytes);

}  // namespace lathe::io
