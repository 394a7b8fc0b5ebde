#include "lathe/data/png_image.h"

#include <png.h>
#include <zlib.h>

#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"
#include "lathe/data/upright_image.h"

namespace lathe::data {
namespace {

constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 28;
constexpr std::uint64_t kMostPixels = 1 << 24;

struct Stored {
  std::string bytes;                    ///< of the file, without what it says of its colours
  std::optional<int> orientation = {};  ///< which way up it says it is
};

std::size_t four_bytes(std::string_view bytes, std::size_t at) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

std::size_t checksum(std::string_view bytes) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

// libpng would bend every pixel by what a file says of its colours; networks learn from the bytes
// that are stored, as everybody else reads them. Each chunk is its length, its name, so many bytes
// and a checksum of its own, of name and bytes. Of several chunks of Exif, and of damaged ones,
// libpng takes the first that is sound; behind IEND the image is over.
Stored take_apart(std::string_view bytes) {
  constexpr std::size_t kSignature = 8, kFrame = 12;
  Stored result{.bytes = std::string(bytes.substr(0, kSignature))};
  std::size_t at = result.bytes.size();
  while (bytes.size() - at >= kFrame) {
    const std::size_t length = four_bytes(bytes, at);
    if (length > bytes.size() - at - kFrame) break;  // libpng says what is wrong with it
    const std::string_view name = bytes.substr(at + 4, 4);
    if (name == "IEND") break;
    if (name == "eXIf" && !result.orientation &&
        checksum(bytes.substr(at + 4, 4 + length)) == four_bytes(bytes, at + 8 + length))
      result.orientation = orientation_of(bytes.substr(at + 8, length));
    if (name != "gAMA" && name != "cHRM" && name != "sRGB" && name != "iCCP" && name != "cICP")
      result.bytes += bytes.substr(at, length + kFrame);
    at += length + kFrame;
  }
  result.bytes += bytes.substr(at);
  return result;
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
  const Stored stored = take_apart(read_text_file(path, kMostFileBytes));
  return with_place(path.string(), [&] {
    if (stored.bytes.empty()) fail("is not a sound PNG: it is empty");
    return turn_upright(Reader(stored.bytes).read(), stored.orientation.value_or(1));
  });
}

}  // namespace lathe::data
