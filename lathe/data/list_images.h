#pragma once

#include <filesystem>
#include <vector>

namespace lathe::data {

/// The images in a folder and in the folders in it, by their paths. Links to folders are followed.
/// Fails on what would leave images out (a folder that cannot be listed, an image of a kind that is
/// not read, a link to nothing in the folder itself, or in one in it where its name has no ending)
/// and on a link to what is read anyway: its images would count twice, or without an end where it
/// leads back.
std::vector<std::filesystem::path> list_images(const std::filesystem::path& folder);

/// Whether the folders in a folder hold images, also of kinds that are not read. Fails where one
/// that may hold some cannot be listed.
bool has_folders_of_images(const std::filesystem::path& folder);

}  // namespace lathe::data
