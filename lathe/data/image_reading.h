#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/resize_image.h"

namespace lathe::data {

/// What is done to images before a network sees them: resized, the middle cut out, pixels made
/// numbers. As they are, with pixels from 0 to 1, where nothing is said.
struct ImageReading {
  std::int64_t height = 0, width = 0;  ///< what images are resized to; 0: they are not
  /// Instead: what their shorter side is brought to, the longer one in proportion.
  std::int64_t shortest = 0;
  Resample resample = Resample::Bilinear;
  std::int64_t crop_height = 0, crop_width = 0;  ///< of the middle, after that; 0: all is kept
  bool is_colour = false;                        ///< grey images get three equal channels
  double white = 1;                              ///< what the largest pixel, 255, becomes
  /// Of each channel, or one for all: subtracted then, and divided by. Empty: neither.
  std::vector<double> mean = {}, deviation = {};
  bool operator==(const ImageReading&) const = default;
};

/// Fails on sizes, means and deviations that no image can have.
void check_image_reading(const ImageReading& reading);

/// Reads `resize=224` (or `resize=ROWSxCOLUMNS`), `shortest=256`, `resample=bicubic`, `crop=224`,
/// `colour`, `white=255`, `mean=0.5` (or `mean=R/G/B`) and `deviation=0.5`, with commas between
/// them: what they change in `base`.
ImageReading parse_image_reading(std::string_view text, ImageReading base = {});

/// The same text for a reading; empty for one that changes nothing.
std::string to_text(const ImageReading& reading);

/// Resizes and cuts an image. Fails on one that is smaller than what is cut out of it.
Image prepare(Image image, const ImageReading& reading);

/// The number that a pixel becomes, of each channel or of all alike.
float pixel_value(const ImageReading& reading, std::int64_t channel, unsigned char byte);

/// Appends the numbers that an image's pixels become, channel after channel.
void append_values(std::vector<float>& values, const Image& image, const ImageReading& reading);

}  // namespace lathe::data
