#include "lathe/io/weight_directory.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_access.h"
#include "lathe/io/directory_text.h"
#include "lathe/io/json_file.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/pytorch_file.h"
#include "lathe/io/safetensors.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kPytorchFile = "pytorch_model.bin";
constexpr std::string_view kPytorchIndexFile = "pytorch_model.bin.index.json";

StoredWeights read_safetensors(const SafetensorsFile& file) {
  StoredWeights weights;
  for (const TensorInfo& info : file.tensors())
    weights.tensors.emplace(info.name, file.tensor(info.name));
  const auto forms = file.metadata().find(kFormsKey);
  if (forms == file.metadata().end()) return weights;
  with_place(fmt::format("{}: {}", file.path().string(), kFormsKey), [&] {
    for (auto& [name, form] : parse_forms(forms->second)) {
      if (!file.has(name)) fail("tensor {}: has a form, but is not in this file", quote_text(name));
      weights.forms.emplace(name, std::move(form));
    }
  });
  return weights;
}

// A file of weights, by its name.
StoredWeights read_file(const std::shared_ptr<const MappedFile>& file) {
  if (file->path().extension() == ".bin") return {.tensors = read_pytorch_file(file), .forms = {}};
  return read_safetensors(SafetensorsFile(file));
}

// Which files a directory holds its weights in: the first of these.
struct WeightFiles {
  std::string_view name;
  bool is_index = false;
};
constexpr WeightFiles kWeightFiles[] = {
    {kSingleFile, false}, {kIndexFile, true}, {kPytorchFile, false}, {kPytorchIndexFile, true}};

WeightFiles find_weights(const fs::path& directory) {
  for (const WeightFiles& files : kWeightFiles)
    if (is_there(directory / files.name)) return files;
  fail("{}: has no weights, looked for {}, {} and their indexes", directory.string(), kSingleFile,
       kPytorchFile);
}

// Which shard holds each tensor, as the index says.
std::map<std::string, std::string> read_weight_map(const fs::path& index_path) {
  const json index = read_json(index_path);
  return with_place(index_path.string(), [&] {
    if (!index.is_object() || !index.contains("weight_map"))
      fail("has no \"weight_map\", expected an object of tensor names and their files");
    const json& entries = index["weight_map"];
    if (!entries.is_object()) fail("weight_map: is {}, expected an object", entries.type_name());
    if (entries.empty()) fail("weight_map: is empty, expected at least one tensor");
    if (entries.size() > kMaxTensors)
      fail("weight_map: {} tensors, expected at most {}", entries.size(), kMaxTensors);
    std::map<std::string, std::string> shard_of;
    for (const auto& [tensor, shard] : entries.items()) {
      if (!shard.is_string())
        fail("weight_map: {} is {}, expected a file name", quote_text(tensor), shard.type_name());
      shard_of.emplace(tensor, shard.get<std::string>());
    }
    return shard_of;
  });
}

std::set<std::string> shard_names(const std::map<std::string, std::string>& shard_of) {
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  return shards;
}

StoredWeights read_shards(const fs::path& directory, std::string_view index) {
  const fs::path index_path = directory / index;
  const std::map<std::string, std::string> shard_of = read_weight_map(index_path);

  StoredWeights all;
  for (const std::string& shard : shard_names(shard_of)) {
    const fs::path place = directory / shard;
    StoredWeights weights =
        with_place(index_path.string(), [&] { return read_file(map_beneath(directory, shard)); });
    for (const auto& [tensor, value] : weights.tensors) {
      const auto listed = shard_of.find(tensor);
      if (listed == shard_of.end())
        fail("{}: tensor {} is not in the weight_map of {}", place.string(), quote_text(tensor),
             index);
      if (listed->second != shard)
        fail("{}: tensor {} is in this file, but {} puts it in {}", place.string(),
             quote_text(tensor), index, quote_text(listed->second));
    }
    all.tensors.merge(weights.tensors);
    all.forms.merge(weights.forms);
  }
  for (const auto& [tensor, shard] : shard_of)
    if (!all.tensors.contains(tensor))
      fail("{}: has no tensor {}, which {} puts there", (directory / shard).string(),
           quote_text(tensor), index);
  return all;
}

void require_directory(const fs::path& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) fail("{}: no such directory", directory.string());
  if (!fs::is_directory(status)) fail("{}: is not a directory", directory.string());
}

// Tensors in name order, cut wherever the next one would exceed the limit.
std::vector<State> split_into_shards(const State& weights, std::int64_t max_shard_bytes) {
  std::vector<State> shards(1);
  std::int64_t num_bytes = 0;
  for (const auto& [name, tensor] : weights) {
    if (!shards.back().empty() && tensor.num_bytes() > max_shard_bytes - num_bytes) {
      shards.emplace_back();
      num_bytes = 0;
    }
    shards.back().emplace(name, tensor);
    num_bytes += tensor.num_bytes();
  }
  return shards;
}

// "model-00001-of-00002.safetensors"
bool is_shard_name(std::string_view name) {
  constexpr std::string_view kPattern = "model-00000-of-00000.safetensors";
  return std::ranges::equal(name, kPattern, [](char c, char pattern) {
    return pattern == '0' ? c >= '0' && c <= '9' : c == pattern;
  });
}

void remove_stale_files(const fs::path& directory, const std::set<std::string>& written) {
  std::vector<fs::path> stale;
  std::error_code error;
  for (auto entry = fs::directory_iterator(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (written.contains(name)) continue;
    if (name == kSingleFile || name == kIndexFile || is_shard_name(name))
      stale.push_back(entry->path());
  }
  if (error) fail_with_errno(directory, "list", error.value());
  // The single file is read in preference and the index names the shards, so in this order whatever
  // remains after an interruption is still the new weights.
  std::ranges::sort(stale, {},
                    [](const fs::path& path) { return is_shard_name(path.filename().string()); });
  for (const fs::path& path : stale)
    if (!fs::remove(path, error) && error) fail_with_errno(path, "remove", error.value());
  if (!stale.empty()) sync_directory(directory);
}

}  // namespace

StoredWeights read_stored_weights(const fs::path& directory) {
  require_directory(directory);
  const WeightFiles files = find_weights(directory);
  return files.is_index ? read_shards(directory, files.name)
                        : read_file(MappedFile::open(directory / files.name));
}

State read_weights(const fs::path& directory) {
  const StoredWeights stored = read_stored_weights(directory);
  return with_place(directory.string(), [&] { return restore_weights(stored); });
}

std::vector<std::string> weight_files(const fs::path& directory) {
  require_directory(directory);
  const WeightFiles files = find_weights(directory);
  if (!files.is_index) return {std::string(files.name)};
  std::set<std::string> names = shard_names(read_weight_map(directory / files.name));
  names.emplace(files.name);
  return {names.begin(), names.end()};
}

void write_weights(const fs::path& directory, const State& weights, std::int64_t max_shard_bytes) {
  write_weights(directory, StoredWeights{weights, {}}, max_shard_bytes);
}

void write_weights(const fs::path& directory, const StoredWeights& weights,
                   std::int64_t max_shard_bytes) {
  require_directory(directory);
  if (max_shard_bytes < 1) fail("shard size {}: expected at least 1 byte", max_shard_bytes);
  const std::vector<State> shards = split_into_shards(weights.tensors, max_shard_bytes);
  const auto metadata = [&](const State& shard) {
    Metadata result{{"format", "pt"}};
    StoredForms forms;
    for (const auto& [name, tensor] : shard)
      if (const auto form = weights.forms.find(name); form != weights.forms.end())
        forms.insert(*form);
    if (!forms.empty()) result.emplace(kFormsKey, print_forms(forms));
    return result;
  };
  std::set<std::string> written;
  if (shards.size() == 1) {
    write_safetensors(directory / kSingleFile, weights.tensors, metadata(weights.tensors));
    written.insert(std::string(kSingleFile));
  } else {
    json weight_map = json::object();
    std::int64_t total_size = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const std::string file =
          fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
      write_safetensors(directory / file, shards[i], metadata(shards[i]));
      written.insert(file);
      for (const auto& [name, tensor] : shards[i]) {
        weight_map[name] = file;
        total_size += tensor.num_bytes();
      }
    }
    const json index{{"metadata", {{"total_size", total_size}}}, {"weight_map", weight_map}};
    write_atomically(directory / kIndexFile, index.dump(2, ' ', true) + "\n");
    written.insert(std::string(kIndexFile));
  }
  remove_stale_files(directory, written);
}

}  // namespace lathe::io
