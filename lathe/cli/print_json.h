#pragma once

#include <nlohmann/json.hpp>

namespace lathe::cli {

/// One line on standard output; bytes that are no UTF-8 are replaced.
void print_json(const nlohmann::ordered_json& json);

}  // namespace lathe::cli
