#pragma once

#include <filesystem>

#include "lathe/core/json_reader.h"

namespace lathe::io {

/// Parses the JSON in a regular file; errors begin with its path.
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

}  // namespace lathe::io
