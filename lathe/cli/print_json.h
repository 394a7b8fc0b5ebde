#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lathe::cli {

/// The JSON as a line, without its end; bytes that are no UTF-8, such as those of a path, are
/// written as
/// `\xff`.
std::string json_line(nlohmann::ordered_json json);

/// The same on standard output.
void print_json(nlohmann::ordered_json json);

}  // namespace lathe::cli
