#pragma once

#include <nlohmann/json.hpp>

namespace lathe::cli {

/// One line on standard output; bytes that are no UTF-8, such as those of a path, are written as
/// `\xff`.
void print_json(nlohmann::ordered_json json);

}  // namespace lathe::cli
