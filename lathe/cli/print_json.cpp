#include "lathe/cli/print_json.h"

#include <fmt/core.h>

namespace lathe::cli {

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace lathe::cli
