#pragma once

#include <filesystem>

#include "lathe/data/image.h"

namespace lathe::data {

/// Whether a file name ends as those of images do that are read: .png, .jpg or .jpeg, in small or
/// capital letters.
bool has_image_ending(const std::filesystem::path& path);

/// Whether a file name ends as those of images do, also of kinds that are not read (.gif, .webp).
bool names_image(const std::filesystem::path& path);

/// Whether a file is an image that is read. Fails on one of another kind, and on a name of an image
/// with no file behind it, such as a link to nothing: a folder of images is not read in part.
bool is_image_file(const std::filesystem::path& path);

/// Reads an image by the ending of its name. Errors name the file.
Image read_image(const std::filesystem::path& path);

}  // namespace lathe::data
