#include <unistd.h>

#include <array>
#include <random>

#include "lathe/core/error.h"
#include "lathe/study/storages/storage.h"

namespace lathe::study {

// Host and process are for people who look at a stuck study; the random part makes it unique even
// where containers share both.
Owner new_owner() {
  std::array<char, 65> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  std::random_device random;
  return fmt::format("{}:{}:{:08x}{:08x}", host.data(), getpid(), random(), random());
}

}  // namespace lathe::study
