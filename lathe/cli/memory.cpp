#include "lathe/cli/memory.h"

#include <sys/resource.h>

namespace lathe::cli {

std::int64_t peak_memory_bytes() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

}  // namespace lathe::cli
