#include "lathe/data/image_file.h"

#include "lathe/core/error.h"
#include "lathe/data/jpeg_image.h"
#include "lathe/data/png_image.h"

namespace lathe::data {
namespace {

bool has_png_ending(const std::filesystem::path& path) {
  return path.extension() == ".png" || path.extension() == ".PNG";
}

}  // namespace

bool has_image_ending(const std::filesystem::path& path) {
  return has_png_ending(path) || has_jpeg_ending(path);
}

Image read_image(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    fail("{}: cannot be opened: No such file or directory", path.string());
  if (!has_image_ending(path)) fail("{}: is no image: expected .png, .jpg or .jpeg", path.string());
  return has_jpeg_ending(path) ? read_jpeg(path) : read_png(path);
}

}  // namespace lathe::data
