#pragma once

#include <filesystem>
#include <string_view>

#include "lathe/data/image.h"

namespace lathe::data {

/// Reads a grey or coloured JPEG, turned the way up that its Exif data says; one of four colours,
/// or damaged in any way that the library notices, is refused. Errors name the file.
Image read_jpeg(const std::filesystem::path& path);

}  // namespace lathe::data
