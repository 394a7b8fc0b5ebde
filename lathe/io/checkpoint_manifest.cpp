#include "lathe/io/checkpoint_manifest.h"

#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_access.h"
#include "lathe/io/directory_text.h"
#include "lathe/io/json_file.h"
#include "lathe/io/sha256.h"

namespace lathe::io {
namespace {

using nlohmann::json;

constexpr int kManifestVersion = 1;
constexpr int kOpSet = 1;

const json& member(const json& object, const char* key, json::value_t kind, const char* expected) {
  const auto found = object.find(key);
  const bool fits = found != object.end() &&
                    (found->type() == kind ||
                     (kind == json::value_t::number_unsigned && found->is_number_integer()));
  if (!fits) fail("\"{}\": expected {}", key, expected);
  return *found;
}

std::vector<std::string> read_texts(const json& object, const char* key) {
  std::vector<std::string> texts;
  for (const json& item : member(object, key, json::value_t::array, "a list of texts")) {
    if (!item.is_string()) fail("\"{}\": expected a list of texts", key);
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::map<std::string, Manifest::File> read_files(const json& object, const char* key) {
  std::map<std::string, Manifest::File> files;
  for (const auto& [name, file] : member(object, key, json::value_t::object, "an object").items()) {
    if (!file.is_object()) fail("\"{}\": \"{}\" is not an object", key, name);
    files[name] = {
        member(file, "bytes", json::value_t::number_unsigned, "a number").get<std::int64_t>(),
        member(file, "sha256", json::value_t::string, "a text").get<std::string>()};
  }
  return files;
}

json to_json(const std::map<std::string, Manifest::File>& files) {
  json result = json::object();
  for (const auto& [name, file] : files)
    result[name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  return result;
}

void verify_file(const std::filesystem::path& directory, const std::string& name,
                 const Manifest::File& expected) {
  const std::shared_ptr<const MappedFile> file = map_beneath(directory, name);
  const std::string path = (directory / name).string();
  if (static_cast<std::int64_t>(file->size()) != expected.bytes)
    fail("{}: has {} bytes, but the manifest says {}", path, file->size(), expected.bytes);
  if (sha256(file->bytes()) != expected.sha256)
    fail("{}: its SHA-256 differs from the manifest's: the file was altered", path);
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
    if (version != kManifestVersion || op_set < 1 || op_set > kOpSet)
      fail(
          "version {} with op set {} cannot be read: this program reads version {} up to op set {}",
          version.dump(), op_set.dump(), kManifestVersion, kOpSet);
    manifest.version = version.get<int>();
    manifest.op_set = op_set.get<int>();
    manifest.family = member(text, "family", json::value_t::string, "a text").get<std::string>();
    manifest.task = member(text, "task", json::value_t::string, "a text").get<std::string>();
    manifest.label_names = read_texts(text, "labels");
    if (text.contains("fresh")) manifest.fresh = read_texts(text, "fresh");
    manifest.files = read_files(text, "files");
    if (text.contains("optional_files"))
      manifest.optional_files = read_files(text, "optional_files");
    return manifest;
  });
}

void write_manifest(const std::filesystem::path& directory, const Manifest& manifest) {
  json text = {{"format", kCheckpointFormat},
               {"version", kManifestVersion},
               {"op_set", kOpSet},
               {"family", manifest.family},
               {"task", manifest.task},
               {"labels", manifest.label_names},
               {"files", to_json(manifest.files)}};
  if (!manifest.fresh.empty()) text["fresh"] = manifest.fresh;
  if (!manifest.optional_files.empty()) text["optional_files"] = to_json(manifest.optional_files);
  write_atomically(directory / kManifestName, text.dump(2) + "\n");
}

std::map<std::string, Manifest::File> describe_files(const std::filesystem::path& directory,
                                                     const std::vector<std::string>& names) {
  std::map<std::string, Manifest::File> files;
  for (const std::string& name : names) {
    const std::shared_ptr<const MappedFile> file = map_beneath(directory, name);
    files[name] = {static_cast<std::int64_t>(file->size()), sha256(file->bytes())};
  }
  return files;
}

void verify_files(const std::filesystem::path& directory, const Manifest& manifest) {
  const std::string compressed_graph = std::string(kGraphName) + kCompressedEnding;
  for (const std::string needed : {kGraphName, "config.json"})
    if (!manifest.files.contains(needed) &&
        !(needed == kGraphName && manifest.files.contains(compressed_graph)))
      fail("{}: the manifest does not list {}", directory.string(), needed);
  // These are read by their usual names, so a file under one of them must have been hashed.
  for (const std::string& name :
       {std::string(kGraphName), compressed_graph, std::string("model.safetensors"),
        std::string("model.safetensors.index.json"), std::string(kMastersName)}) {
    std::error_code error;
    const std::filesystem::path path = directory / name;
    if (!manifest.files.contains(name) && !manifest.optional_files.contains(name) &&
        std::filesystem::exists(path, error))
      fail("{}: is not listed in the manifest", path.string());
  }
  for (const auto& [name, expected] : manifest.files) verify_file(directory, name, expected);
  for (const auto& [name, expected] : manifest.optional_files) {
    std::error_code error;
    if (std::filesystem::exists(directory / name, error)) verify_file(directory, name, expected);
  }
}

}  // namespace lathe::io
