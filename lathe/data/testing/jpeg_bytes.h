#pragma once

#include <cstdio>
// libjpeg's header needs what is above.
#include <jpeglib.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace lathe::data {

/// A JPEG file of these pixels at quality 100: grey, coloured or of four inks by its channels.
inline std::string jpeg(unsigned width, unsigned height, int channels,
                        const std::vector<unsigned char>& pixels, bool is_progressive = false) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  if (is_progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> copy = pixels;
  while (info.next_scanline < height) {
    JSAMPROW row[] = {copy.data() + info.next_scanline * width * static_cast<unsigned>(channels)};
    jpeg_write_scanlines(&info, row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<const char*>(buffer), size);
  std::free(buffer);
  return bytes;
}

/// Bytes without order.
inline std::vector<unsigned char> noise(std::size_t count) {
  std::vector<unsigned char> pixels;
  std::uint32_t random = 3;
  for (std::size_t i = 0; i < count; ++i)
    pixels.push_back(static_cast<unsigned char>((random = random * 1664525u + 1013904223u) >> 24));
  return pixels;
}

}  // namespace lathe::data
