#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lathe::data {

/// An image as networks read it: channel after channel, row after row, 0 to 1.
struct Image {
  std::int64_t channels = 0;  ///< 1: grey, 3: red, green, blue
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<float> values;
  bool operator==(const Image&) const = default;
};

/// An image of bytes in which the channels of a pixel lie side by side.
Image to_planes(std::int64_t channels, std::int64_t height, std::int64_t width,
                std::span<const unsigned char> bytes);

}  // namespace lathe::data
