#include "lathe/engine/origin.h"

#include <fmt/format.h>

namespace lathe::engine {

std::string to_text(const Origin& origin) {
  return fmt::format("{}", fmt::join(origin.nodes, " + "));
}

}  // namespace lathe::engine
