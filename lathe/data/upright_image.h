#pragma once

#include <string_view>

#include "lathe/data/image.h"

namespace lathe::data {

/// Which way up a camera was held, by the TIFF that Exif's data are: 1 to 8, and 1 where it does
/// not say or makes no sense.
int orientation_of(std::string_view exif);

/// An image the way up that Exif's orientation says, 1 to 8: 1 is as it is stored, 6 turned by a
/// quarter clockwise. Others count as 1.
Image turn_upright(Image image, int orientation);

}  // namespace lathe::data
