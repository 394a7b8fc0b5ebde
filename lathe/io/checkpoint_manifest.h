#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lathe::io {

/// What a Lathe checkpoint says of itself: versions, what the model is, and every file's size and
/// hash, so that a torn or altered one is never taken for whole.
struct Manifest {
  struct File {
    std::int64_t bytes = 0;
    std::string sha256;
  };
  int version = 1;  ///< of this layout
  int op_set = 1;   ///< of the ops its graph uses
  std::string family;
  std::string task;
  std::vector<std::string> label_names;
  std::vector<std::string> fresh = {};  ///< states that were never trained
  std::map<std::string, File> files;
  std::map<std::string, File> optional_files = {};  ///< may be missing, but not differ
};

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kMastersName = "masters.safetensors";
inline constexpr const char* kCheckpointFormat = "lathe-checkpoint";

Manifest read_manifest(const std::filesystem::path& directory);
void write_manifest(const std::filesystem::path& directory, const Manifest& manifest);

/// The size and hash of the files named.
std::map<std::string, Manifest::File> describe_files(const std::filesystem::path& directory,
                                                     const std::vector<std::string>& names);
/// Fails naming the first file that is missing or differs from the manifest.
void verify_files(const std::filesystem::path& directory, const Manifest& manifest);

}  // namespace lathe::io
