#pragma once

#include <filesystem>
#include <functional>

namespace lathe::cli {

/// Fails when `target` exists and may not be replaced: to be asked before long work, not after it.
void check_output_directory(const std::filesystem::path& target, bool force);

/// Makes `target` through `write`, which is given a path that does not exist. An existing target is
/// refused without `force`; with it, it is replaced only once the new one is complete.
void write_output_directory(const std::filesystem::path& target, bool force,
                            const std::function<void(const std::filesystem::path&)>& write);

}  // namespace lathe::cli
