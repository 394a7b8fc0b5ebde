#pragma once

#include <filesystem>

namespace lathe::data {

/// Whether the folders in a folder hold images, also of kinds that are not read. What cannot be
/// listed holds none.
bool has_folders_of_images(const std::filesystem::path& folder);

}  // namespace lathe::data
