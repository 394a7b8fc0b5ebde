#include "lathe/cli/output_directory.h"

#include <unistd.h>

#include "lathe/core/error.h"

namespace lathe::cli {

namespace fs = std::filesystem;

void check_output_directory(const fs::path& target, bool force) {
  std::error_code error;
  if (!fs::exists(target, error)) return;
  if (!force)
    throw UserError(fmt::format("--out {}: exists already", target.string()),
                    "give --force to replace it");
  if (!fs::is_directory(target, error)) fail("--out {}: is not a directory", target.string());
}

void write_output_directory(const fs::path& given, bool force,
                            const std::function<void(const fs::path&)>& write) {
  // "m/" means "m": names beside it are made by appending.
  const fs::path target = given.has_filename() ? given : given.parent_path();
  std::error_code error;
  if (!fs::exists(target, error)) {
    write(target);
    return;
  }
  check_output_directory(target, force);
  fs::path fresh = target, old = target;
  fresh += fmt::format(".new-{}", ::getpid());
  old += fmt::format(".old-{}", ::getpid());
  write(fresh);
  std::error_code ignored;
  fs::rename(target, old, error);
  if (!error) {
    fs::rename(fresh, target, error);
    if (error) fs::rename(old, target, ignored);
  }
  if (error) {
    fs::remove_all(fresh, ignored);
    fail("--out {}: cannot be replaced: {}", target.string(), error.message());
  }
  fs::remove_all(old, ignored);
}

}  // namespace lathe::cli
