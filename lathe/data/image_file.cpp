#include "lathe/data/image_file.h"

#include <algorithm>
#include <array>

#include "lathe/core/error.h"
#include "lathe/data/jpeg_image.h"
#include "lathe/data/png_image.h"

namespace lathe::data {
namespace {

// In small letters, with its dot.
std::string ending_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return ending;
}

bool has_jpeg_ending(const std::filesystem::path& path) {
  const std::string ending = ending_of(path);
  return ending == ".jpg" || ending == ".jpeg";
}

}  // namespace

bool has_image_ending(const std::filesystem::path& path) {
  return ending_of(path) == ".png" || has_jpeg_ending(path);
}

bool names_image(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 16> kOthers = {
      ".avif", ".bmp", ".gif", ".heic", ".jfif", ".jp2", ".jpe",  ".jxl",
      ".pbm",  ".pgm", ".pnm", ".ppm",  ".tga",  ".tif", ".tiff", ".webp"};
  if (!path.has_extension()) return false;
  return has_image_ending(path) || std::ranges::find(kOthers, ending_of(path)) != kOthers.end();
}

bool is_image_file(const std::filesystem::path& path) {
  if (!names_image(path)) return false;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) return false;
  if (error && status.type() != std::filesystem::file_type::not_found)
    fail("{}: cannot be opened: {}", path.string(), error.message());
  if (!std::filesystem::is_regular_file(status))
    fail("{}: cannot be opened: it is no file, or a link to none", path.string());
  if (!has_image_ending(path))
    fail("{}: is an image that is not read: expected .png, .jpg or .jpeg", path.string());
  return true;
}

Image read_image(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    fail("{}: cannot be opened: No such file or directory", path.string());
  if (!has_image_ending(path)) fail("{}: is no image: expected .png, .jpg or .jpeg", path.string());
  return has_jpeg_ending(path) ? read_jpeg(path) : read_png(path);
}

}  // namespace lathe::data
