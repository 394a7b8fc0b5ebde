#include "lathe/data/jpeg_image.h"

#include <csetjmp>
#include <cstdio>
// libjpeg's header needs what is above.
#include <jpeglib.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"

namespace lathe::data {
namespace {

constexpr std::int64_t kMostJpegBytes = std::int64_t{1} << 28;
constexpr std::uint64_t kMostJpegPixels = 1 << 24;
constexpr long kMostWorkBytes = long{1} << 28;  // of progressive images, which are kept whole

// Which way up the camera was held: tag 0x112 of the first directory of Exif's TIFF, 1 where there
// is none or it makes no sense.
int orientation_of(std::string_view exif) {
  constexpr std::string_view kMark("Exif\0\0", 6);
  if (!exif.starts_with(kMark)) return 1;
  exif.remove_prefix(kMark.size());
  if (exif.size() < 8) return 1;
  const bool is_little = exif[0] == 'I';
  const auto number = [&](std::size_t at, std::size_t size) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(exif[at + (is_little ? size - 1 - i : i)]);
    return value;
  };
  const std::size_t directory = number(4, 4);
  if (directory > exif.size() - 2) return 1;
  for (std::size_t entry = 0; entry < number(directory, 2); ++entry) {
    const std::size_t at = directory + 2 + 12 * entry;
    if (at + 12 > exif.size()) return 1;
    if (number(at, 2) == 0x112 && number(at + 2, 2) == 3)
      return static_cast<int>(number(at + 8, 2));
  }
  return 1;
}

// libjpeg jumps out of an error. The two functions that it jumps back to hold nothing that would
// have to be destroyed, and whoever calls them throws.
struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg knows it by this address
  std::jmp_buf place;
  char message[JMSG_LENGTH_MAX];
};

void leave_jpeg(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  (*info->err->format_message)(info, errors->message);
  std::longjmp(errors->place, 1);
}

// A warning is damage that libjpeg would paint over: the first is an error here.
void note_jpeg(j_common_ptr info, int level) {
  if (level < 0) leave_jpeg(info);
}

bool begin_jpeg(jpeg_decompress_struct& info, JpegErrors& errors, std::string_view bytes) {
  if (setjmp(errors.place) != 0) return false;
  jpeg_create_decompress(&info);
  info.mem->max_memory_to_use = kMostWorkBytes;
  jpeg_save_markers(&info, JPEG_APP0 + 1, 0xFFFF);  // Exif's
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  return true;
}

bool read_jpeg_rows(jpeg_decompress_struct& info, JpegErrors& errors, unsigned char* to) {
  if (setjmp(errors.place) != 0) return false;
  jpeg_start_decompress(&info);
  const std::size_t row = std::size_t{info.output_width} * info.output_components;
  while (info.output_scanline < info.output_height) {
    JSAMPROW rows[] = {to + info.output_scanline * row};
    jpeg_read_scanlines(&info, rows, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

class JpegReader {
 public:
  explicit JpegReader(std::string_view bytes) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = leave_jpeg;
    errors_.manager.emit_message = note_jpeg;
    if (bytes.empty()) fail("is not a sound JPEG: it is empty");
    if (begin_jpeg(info_, errors_, bytes)) return;
    jpeg_destroy_decompress(&info_);  // nobody destroys what was never made
    fail_with_message();
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Image read() {
    if (info_.num_components != 1 && info_.num_components != 3)
      fail("has {} colours, expected grey or red, green and blue", info_.num_components);
    // Only the header has been read: nothing is allocated for an image that is too large.
    if (std::uint64_t{info_.image_width} * info_.image_height > kMostJpegPixels)
      fail("is {} by {}, expected at most {} pixels", info_.image_width, info_.image_height,
           kMostJpegPixels);
    const std::size_t channels = info_.num_components == 1 ? 1 : 3;
    const int orientation = orientation_of(exif());  // before it is freed at the end
    info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    std::vector<unsigned char> bytes(std::size_t{info_.image_width} * info_.image_height *
                                     channels);
    if (!read_jpeg_rows(info_, errors_, bytes.data())) fail_with_message();
    return turn_upright(to_planes(static_cast<std::int64_t>(channels), info_.image_height,
                                  info_.image_width, bytes),
                        orientation);
  }

 private:
  std::string_view exif() const {
    for (const jpeg_marker_struct* each = info_.marker_list; each != nullptr; each = each->next)
      if (const std::string_view data(reinterpret_cast<const char*>(each->data), each->data_length);
          data.starts_with("Exif"))
        return data;
    return {};
  }
  [[noreturn]] void fail_with_message() const { fail("is not a sound JPEG: {}", errors_.message); }

  jpeg_decompress_struct info_{};
  JpegErrors errors_{};
};

}  // namespace

Image turn_upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool swaps = orientation >= 5;  // rows become columns
  const bool flips_rows =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool flips_columns =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image result{
      image.channels, swaps ? image.width : image.height, swaps ? image.height : image.width, {}};
  result.bytes.reserve(image.bytes.size());
  for (std::int64_t channel = 0; channel < image.channels; ++channel)
    for (std::int64_t y = 0; y < result.height; ++y)
      for (std::int64_t x = 0; x < result.width; ++x) {
        const std::int64_t row = swaps ? x : y, column = swaps ? y : x;
        const std::int64_t from_row = flips_rows ? image.height - 1 - row : row;
        const std::int64_t from_column = flips_columns ? image.width - 1 - column : column;
        result.bytes.push_back(image.bytes[static_cast<std::size_t>(
            (channel * image.height + from_row) * image.width + from_column)]);
      }
  return result;
}

Image read_jpeg(const std::filesystem::path& path) {
  const std::string bytes = read_text_file(path, kMostJpegBytes);
  return with_place(path.string(), [&] { return JpegReader(bytes).read(); });
}

bool has_jpeg_ending(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return ending == ".jpg" || ending == ".jpeg";
}

}  // namespace lathe::data
