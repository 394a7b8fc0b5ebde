#include "lathe/cli/resumable_run.h"

#include <fmt/format.h>

#include <cstdio>

#include "lathe/cli/say.h"

namespace lathe::cli {

int tell_how_to_resume(std::string_view how) {
  say("interrupted; to go on, give {}\n", how);
  return 128 + interrupting_signal();
}

}  // namespace lathe::cli
