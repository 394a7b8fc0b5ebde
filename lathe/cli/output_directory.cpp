#include "lathe/cli/output_directory.h"

#include "lathe/core/error.h"
#include "lathe/io/output_directory.h"

namespace lathe::cli {

// The library speaks of options, the program of flags.
void check_output_directory(const std::filesystem::path& target, bool force) {
  std::error_code error;
  if (!force && std::filesystem::exists(target, error))
    throw UserError(fmt::format("--out {}: exists already", target.string()),
                    "give --force to replace it");
  try {
    io::check_output_directory(target, force);
  } catch (const UserError& refusal) {
    throw UserError("--out " + refusal.message(), refusal.hint());
  }
}

void write_output_directory(const std::filesystem::path& target, bool force,
                            const std::function<void(const std::filesystem::path&)>& write) {
  check_output_directory(target, force);
  io::write_output_directory(target, force, write);
}

}  // namespace lathe::cli
