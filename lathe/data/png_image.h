#pragma once

#include <filesystem>

#include "lathe/data/image.h"

namespace lathe::data {

/// Reads a grey or coloured PNG of 8 bits or fewer a channel; one with transparency or 16 bits is
/// refused. Errors name the file.
Image read_png(const std::filesystem::path& path);

}  // namespace lathe::data
