#include "lathe/io/output_directory.h"

#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "lathe/core/error.h"
#include "lathe/data/tokenizer.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/directory_lock.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/new_directory.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

// Absolute and without links as far as the path exists; a last part may be missing.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::weakly_canonical(path, error);
  if (error) result = fs::absolute(path, error).lexically_normal();
  return result.has_filename() ? result : result.parent_path();
}

bool has_file(const fs::path& directory, const char* name) {
  std::error_code error;
  return fs::is_regular_file(directory / name, error);
}

// Other programs write files of the same names, so what the file says counts.
bool has_file_saying(const fs::path& directory, const char* name,
                     std::initializer_list<std::string_view> words) {
  if (!has_file(directory, name)) return false;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(directory / name);
  return std::all_of(words.begin(), words.end(), [&](std::string_view word) {
    return file->text().find(word) != std::string_view::npos;
  });
}

// Nothing but the files of a tokenizer, as `tokenizer train` writes them.
bool holds_tokenizer_alone(const fs::path& directory) {
  if (!has_file_saying(directory, "tokenizer.json", {"\"added_tokens\"", "\"model\""}))
    return false;
  const std::vector<std::string> known = data::all_tokenizer_files();
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (std::find(known.begin(), known.end(), entry->path().filename().string()) == known.end())
      return false;
  return !error;
}

// A directory that may be replaced, held against others while it is.
std::optional<DirectoryLock> lock_replaceable(const fs::path& target, bool force,
                                              const std::vector<fs::path>& needed,
                                              std::string_view resumable = {}) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(target, error))) return std::nullopt;
  const std::string place = target.string();
  if (!force)
    throw UserError(fmt::format("{}: exists already", place),
                    !resumable.empty() && recognized_as(target) == resumable
                        ? "`resume` goes on with it, `force` replaces it"
                        : "`force` replaces it");
  if (!fs::is_directory(target, error)) fail("{}: is not a directory", place);
  if (contains_path(target, fs::current_path(error)))
    fail("{}: holds the working directory and is not replaced", place);
  for (const fs::path& path : needed)
    if (fs::exists(path, error) && contains_path(target, path))
      fail("{}: holds {}, which is needed", place, path.string());
  if (recognized_as(target).empty())
    throw UserError(
        fmt::format("{}: holds neither a run nor a model nor results and is not replaced", place),
        "if it may go, remove it yourself");
  return DirectoryLock(target);
}

}  // namespace

bool contains_path(const fs::path& directory, const fs::path& path) {
  const fs::path outer = resolved(directory), inner = resolved(path);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

std::string recognized_as(const fs::path& directory) {
  std::error_code error;
  if (fs::is_empty(directory, error) && !error) return "empty";
  if (has_file_saying(directory, "run.json", {"\"lathe-run\""})) return "a run";
  if (has_file(directory, "index.html") && has_file(directory, "graph.svg") &&
      has_file_saying(directory, "graph.txt", {"lathe-ir"}))
    return "a demo";
  if (has_file_saying(directory, kManifestName, {kCheckpointFormat})) return "a checkpoint";
  const bool has_weights = has_file(directory, "model.safetensors") ||
                           has_file(directory, "model.safetensors.index.json");
  if (has_weights && has_file(directory, "config.json")) return "a model";
  if (has_file(directory, "adapter_config.json")) return "an adapter";
  if (has_file_saying(directory, "design.json", {"\"lathe-design\""})) return "a design";
  if (has_file_saying(directory, "results.json", {"\"lathe-compression\""})) return "a compression";
  if (has_file_saying(directory, "results.json", {"\"lathe-search\""})) return "a search";
  if (has_file_saying(directory, "results.json", {"\"configuration\"", "\"points\""}))
    return "a sweep";
  if (holds_tokenizer_alone(directory)) return "a tokenizer";
  return "";
}

void check_output_directory(const fs::path& target, bool force, const std::vector<fs::path>& needed,
                            std::string_view resumable) {
  lock_replaceable(target, force, needed, resumable);
}

void clear_output_directory(const fs::path& target, bool force,
                            const std::vector<fs::path>& needed) {
  if (const std::optional<DirectoryLock> lock = lock_replaceable(target, force, needed))
    remove_directory(target);
}

void write_output_directory(const fs::path& target, bool force,
                            const std::function<void(const fs::path&)>& write) {
  // Held until the end: nobody may start a run in what is about to be replaced.
  const std::optional<DirectoryLock> lock = lock_replaceable(target, force, {});
  if (!lock) {
    write(target);
    return;
  }
  fs::path fresh = target.has_filename() ? target : target.parent_path();
  fresh += fmt::format(".new-{}", ::getpid());
  try {
    write(fresh);
    replace_directory(fresh, target);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    throw;
  }
}

}  // namespace lathe::io
