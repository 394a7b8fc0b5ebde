#include "lathe/data/image.h"

namespace lathe::data {

Image to_planes(std::int64_t channels, std::int64_t height, std::int64_t width,
                std::span<const unsigned char> bytes) {
  Image result{channels, height, width, {}};
  result.values.reserve(bytes.size());
  const auto step = static_cast<std::size_t>(channels);
  for (std::size_t channel = 0; channel < step; ++channel)
    for (std::size_t i = channel; i < bytes.size(); i += step)
      result.values.push_back(static_cast<float>(bytes[i]) / 255.0f);
  return result;
}

}  // namespace lathe::data
