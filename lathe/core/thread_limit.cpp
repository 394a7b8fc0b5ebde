#include "lathe/core/thread_limit.h"

#include "lathe/core/error.h"
#include "lathe/core/thread_pool.h"

namespace lathe {

void check_threads(int num_threads) {
  const int cores = num_available_threads();
  if (num_threads < 0 || num_threads > 4 * cores)
    fail("threads {}: expected 0 to {}, four times the {} here", num_threads, 4 * cores,
         cores == 1 ? "one core" : fmt::format("{} cores", cores));
}

}  // namespace lathe
