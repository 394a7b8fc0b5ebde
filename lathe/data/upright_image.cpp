#include "lathe/data/upright_image.h"

namespace lathe::data {

// Tag 0x112 of the first directory.
int orientation_of(std::string_view exif) {
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

}  // namespace lathe::data
