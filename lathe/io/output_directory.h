#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Directories that results are written to: what may be replaced, and how.
namespace lathe::io {

/// Whether `path` is `directory` or lies in it, once links and ".." are resolved: by the parts of
/// the paths, so that `runs/abc` does not hold `runs/abc-base`.
bool contains_path(const std::filesystem::path& directory, const std::filesystem::path& path);

/// What a directory is known to be, of what this program writes or reads: "a run", "a checkpoint",
/// "a model", "an adapter", "a sweep", "a compression", "a search", "a design", "a demo", "a
/// tokenizer", or "empty"; nothing for any other.
std::string recognized_as(const std::filesystem::path& directory);

/// Fails when `target` exists and may not be replaced: to be asked before long work, not after it.
///
/// Without `force` nothing is replaced. With it only a directory that is recognized is, in which no
/// other process is at work, and that holds neither the working directory nor anything in `needed`,
/// what the work reads. Where it is what `resumable` says ("a run"), the hint says that too.
void check_output_directory(const std::filesystem::path& target, bool force,
                            const std::vector<std::filesystem::path>& needed = {},
                            std::string_view resumable = {});

/// Removes what is at `target`, after the same questions, so that work can begin there.
void clear_output_directory(const std::filesystem::path& target, bool force,
                            const std::vector<std::filesystem::path>& needed = {});

/// Makes `target` through `write`, which is given a path that does not exist. What is there is
/// replaced only once the new one is complete, after the same questions; `write` may read from it.
void write_output_directory(const std::filesystem::path& target, bool force,
                            const std::function<void(const std::filesystem::path&)>& write);

}  // namespace lathe::io
