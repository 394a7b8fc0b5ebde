#include "lathe/data/png_image.h"

#include <png.h>

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"

namespace lathe::data {
namespace {

constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 28;
constexpr std::uint64_t kMostPixels = 1 << 24;

// The file without what it says of its colours. libpng would bend every pixel by it; networks learn
// from the bytes that are stored, as everybody else reads them. Each chunk is its length, its name,
// so many bytes and a checksum of its own.
std::string without_colour_spaces(std::string_view bytes) {
  constexpr std::size_t kSignature = 8, kFrame = 12;
  std::string result(bytes.substr(0, kSignature));
  std::size_t at = result.size();
  while (bytes.size() - at >= kFrame) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
    if (length > bytes.size() - at - kFrame) break;  // libpng says what is wrong with it
    const std::string_view name = bytes.substr(at + 4, 4);
    if (name != "gAMA" && name != "cHRM" && name != "sRGB" && name != "iCCP" && name != "cICP")
      result += bytes.substr(at, length + kFrame);
    at += length + kFrame;
  }
  return result += bytes.substr(at);
}

// libpng's simplified interface: it returns errors instead of jumping over our frames.
class Reader {
 public:
  explicit Reader(std::string_view bytes) {
    image_.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size())) fail_with_message();
  }
  ~Reader() { png_image_free(&image_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Image read() {
    if (image_.format & PNG_FORMAT_FLAG_ALPHA)
      fail("has transparent pixels, expected grey or red, green and blue");
    if (image_.format & PNG_FORMAT_FLAG_LINEAR) fail("has 16 bits a channel, expected at most 8");
    // Only the header has been read: nothing is allocated for an image that is too large.
    if (std::uint64_t{image_.width} * image_.height > kMostPixels)
      fail("is {} by {}, expected at most {} pixels", image_.width, image_.height, kMostPixels);
    const bool is_colour = image_.format & PNG_FORMAT_FLAG_COLOR;
    image_.format = is_colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    std::vector<unsigned char> bytes(PNG_IMAGE_SIZE(image_));
    if (!png_image_finish_read(&image_, nullptr, bytes.data(), 0, nullptr)) fail_with_message();

    return to_planes(is_colour ? 3 : 1, image_.height, image_.width, bytes);
  }

 private:
  [[noreturn]] void fail_with_message() const { fail("is not a sound PNG: {}", image_.message); }

  png_image image_{};
};

}  // namespace

Image read_png(const std::filesystem::path& path) {
  const std::string bytes = without_colour_spaces(read_text_file(path, kMostFileBytes));
  return with_place(path.string(), [&] { return Reader(bytes).read(); });
}

}  // namespace lathe::data
