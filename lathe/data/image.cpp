#include "lathe/data/image.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::data {

Image to_planes(std::int64_t channels, std::int64_t height, std::int64_t width,
                std::span<const unsigned char> bytes) {
  Image result{channels, height, width, {}};
  result.bytes.reserve(bytes.size());
  const auto step = static_cast<std::size_t>(channels);
  for (std::size_t channel = 0; channel < step; ++channel)
    for (std::size_t i = channel; i < bytes.size(); i += step) result.bytes.push_back(bytes[i]);
  return result;
}

Image to_colour(Image image) {
  if (image.channels != 1) return image;
  const std::size_t size = image.plane_size();
  image.channels = 3;
  image.bytes.resize(3 * size);
  for (std::size_t copy = 1; copy < 3; ++copy)
    std::copy_n(image.bytes.begin(), size,
                image.bytes.begin() + static_cast<std::ptrdiff_t>(copy * size));
  return image;
}

Image crop_middle(const Image& image, std::int64_t height, std::int64_t width) {
  check(height <= image.height && width <= image.width, "a crop within the image");
  Image result{image.channels, height, width, {}};
  result.bytes.reserve(static_cast<std::size_t>(image.channels * height * width));
  const std::int64_t top = (image.height - height) / 2, left = (image.width - width) / 2;
  for (std::int64_t channel = 0; channel < image.channels; ++channel)
    for (std::int64_t row = 0; row < height; ++row) {
      const auto begin =
          image.bytes.begin() + ((channel * image.height + top + row) * image.width + left);
      result.bytes.insert(result.bytes.end(), begin, begin + width);
    }
  return result;
}

}  // namespace lathe::data
