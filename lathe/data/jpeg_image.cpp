#include "lathe/data/jpeg_image.h"

#include <csetjmp>
#include <cstdio>
// libjpeg's header needs what is above.
#include <jpeglib.h>

#include "lathe/core/error.h"
#include "lathe/data/text_file.h"
#include "lathe/data/upright_image.h"

namespace lathe::data {
namespace {

constexpr std::int64_t kMostJpegBytes = std::int64_t{1} << 28;
constexpr std::uint64_t kMostJpegPixels = 1 << 24;
constexpr long kMostWorkBytes = long{1} << 28;  // of progressive images, which are kept whole

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
    const int orientation = orientation_of(exif_directory());  // before it is freed at the end
    info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    std::vector<unsigned char> bytes(std::size_t{info_.image_width} * info_.image_height *
                                     channels);
    if (!read_jpeg_rows(info_, errors_, bytes.data())) fail_with_message();
    return turn_upright(to_planes(static_cast<std::int64_t>(channels), info_.image_height,
                                  info_.image_width, bytes),
                        orientation);
  }

 private:
  // Exif's TIFF, behind the mark of its segment.
  std::string_view exif_directory() const {
    constexpr std::string_view kMark("Exif\0\0", 6);
    for (const jpeg_marker_struct* each = info_.marker_list; each != nullptr; each = each->next)
      if (const std::string_view data(reinterpret_cast<const char*>(each->data), each->data_length);
          data.starts_with(kMark))
        return data.substr(kMark.size());
    return {};
  }
  [[noreturn]] void fail_with_message() const { fail("is not a sound JPEG: {}", errors_.message); }

  jpeg_decompress_struct info_{};
  JpegErrors errors_{};
};

}  // namespace

Image read_jpeg(const std::filesystem::path& path) {
  const std::string bytes = read_text_file(path, kMostJpegBytes);
  return with_place(path.string(), [&] { return JpegReader(bytes).read(); });
}

}  // namespace lathe::data
