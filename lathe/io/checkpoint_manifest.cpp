#include "lathe/io/checkpoint_manifest.h"

#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_access.h"
#include "lathe/io/json_file.h"
#include "lathe/io/sha256.h"

namespace lathe::io {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr int kOpSet = 1;

const json& member(const json& object, const char* key, json::value_t kind, const char* expected) {
  const auto found = object.find(key);
  const bool fits = found != object.end() &&
                    (found->type() == kind ||
                     (kind == json::value_t::number_unsigned && found->is_number_integer()));
  if (!fits) fail("\"{}\": expected {}", key, expected);
  return *found;
}

}  // namespace

Manifest read_manifest(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kManifestName;
  const json text = read_json(path);
  return with_place(path.string(), [&] {
    if (!text.is_object() || text.value("format", json()) != kCheckpointFormat)
      fail("\"format\" is not \"{}\"", kCheckpointFormat);
    Manifest manifest;
    // Compared before they are narrowed, which could turn any number into ours.
    const json& version = member(text, "version", json::value_t::number_unsigned, "a number");
    const json& op_set = member(text, "op_set", json::value_t::number_unsigned, "a number");
    if (version != kVersion || op_set < 1 || op_set > kOpSet)
      fail(
          "version {} with op set {} cannot be read: this program reads version {} up to op set {}",
          version.dump(), op_set.dump(), kVersion, kOpSet);
    manifest.version = version.get<int>();
    manifest.op_set = op_set.get<int>();
    manifest.family = member(text, "family", json::value_t::string, "a text").get<std::string>();
    manifest.task = member(text, "task", json::value_t::string, "a text").get<std::string>();
    for (const json& label : member(text, "labels", json::value_t::array, "a list of texts")) {
      if (!label.is_string()) fail("\"labels\": expected a list of texts");
      manifest.label_names.push_back(label.get<std::string>());
    }
    const json& files = member(text, "files", json::value_t::object, "an object");
    for (const auto& [name, file] : files.items()) {
      if (!file.is_object()) fail("\"files\": \"{}\" is not an object", name);
      manifest.files[name] = {
          member(file, "bytes", json::value_t::number_unsigned, "a number").get<std::int64_t>(),
          member(file, "sha256", json::value_t::string, "a text").get<std::string>()};
    }
    return manifest;
  });
}

void write_manifest(const std::filesystem::path& directory, const Manifest& manifest) {
  json text = {
      {"format", kCheckpointFormat}, {"version", kVersion},   {"op_set", kOpSet},
      {"family", manifest.family},   {"task", manifest.task}, {"labels", manifest.label_names},
      {"files", json::object()}};
  for (const auto& [name, file] : manifest.files)
    text["files"][name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  write_atomically(directory / kManifestName, text.dump(2) + "\n");
}

void add_files(Manifest& manifest, const std::filesystem::path& directory,
               const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::shared_ptr<const MappedFile> file = map_beneath(directory, name);
    manifest.files[name] = {static_cast<std::int64_t>(file->size()), sha256(file->bytes())};
  }
}

void verify_files(const std::filesystem::path& directory, const Manifest& manifest) {
  for (const char* needed : {"graph.txt", "config.json"})
    if (!manifest.files.contains(needed))
      fail("{}: the manifest does not list {}", directory.string(), needed);
  // Weights are read by their usual names, so a file under one of these must have been hashed.
  for (const char* weights : {"model.safetensors", "model.safetensors.index.json"}) {
    std::error_code error;
    const std::filesystem::path path = directory / weights;
    if (!manifest.files.contains(weights) && std::filesystem::exists(path, error))
      fail("{}: is not listed in the manifest", path.string());
  }
  for (const auto& [name, expected] : manifest.files) {
    const std::shared_ptr<const MappedFile> file = map_beneath(directory, name);
    const std::string path = (directory / name).string();
    if (static_cast<std::int64_t>(file->size()) != expected.bytes)
      fail("{}: has {} bytes, but the manifest says {}", path, file->size(), expected.bytes);
    if (sha256(file->bytes()) != expected.sha256)
      fail("{}: its SHA-256 differs from the manifest's: the file was altered", path);
  }
}

}  // namespace lathe::io
