#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lathe::data {

/// An image as files hold it, in bytes: channel after channel, row after row.
struct Image {
  std::int64_t channels = 0;  ///< 1: grey, 3: red, green, blue
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<unsigned char> bytes;
  bool operator==(const Image&) const = default;

  std::size_t plane_size() const { return static_cast<std::size_t>(height * width); }
};

/// An image of bytes in which the channels of a pixel lie side by side.
Image to_planes(std::int64_t channels, std::int64_t height, std::int64_t width,
                std::span<const unsigned char> bytes);

/// A grey image with its channel three times; a coloured one as it is.
Image to_colour(Image image);

/// The part of an image around its middle, which must not be larger than it; where rows or columns
/// are left over unevenly, one more at the end.
Image crop_middle(const Image& image, std::int64_t height, std::int64_t width);

}  // namespace lathe::data
