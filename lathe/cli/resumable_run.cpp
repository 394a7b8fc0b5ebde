#include "lathe/cli/resumable_run.h"

#include <fmt/format.h>

#include <cstdio>

namespace lathe::cli {

int tell_how_to_resume(std::string_view how) {
  fmt::print(stderr, "interrupted; to go on, give {}\n", how);
  return 128 + interrupting_signal();
}

}  // namespace lathe::cli
