#pragma once

#include <filesystem>
#include <string_view>

#include "lathe/data/image.h"

namespace lathe::data {

/// Reads a grey or coloured JPEG, turned the way up that its Exif data says; one of four colours,
/// or damaged in any way that the library notices, is refused. Errors name the file.
Image read_jpeg(const std::filesystem::path& path);

/// Whether a file name ends as those of JPEGs do: .jpg or .jpeg, in small or capital letters.
bool has_jpeg_ending(const std::filesystem::path& path);

}  // namespace lathe::data
