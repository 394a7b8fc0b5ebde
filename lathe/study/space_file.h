#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// Reads a space from TOML:
///
///     [parameters]
///     layer = {type = "categorical", choices = ["int", "fixed"]}
///     width = {type = "int", low = 2, high = 8, step = 2, when = {layer = "int"}}
///     lr = {type = "float", low = 1e-5, high = 0.1, log = true}
///
/// Parameters keep the order of the file, except that a parent comes before its children. Errors
/// begin with `source`, the line and the parameter.
Space parse_space_toml(std::string_view text, const std::string& source);
Space read_space_file(const std::filesystem::path& path);

}  // namespace lathe::study
