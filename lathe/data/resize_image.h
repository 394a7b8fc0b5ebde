#pragma once

#include <string>
#include <string_view>

#include "lathe/data/image.h"

namespace lathe::data {

/// How the pixels of a smaller or larger image are made of those there are.
enum class Resample : std::uint8_t { Nearest, Lanczos, Bilinear, Bicubic, Box };
/// The way called `nearest`, `lanczos`, `bilinear`, `bicubic` or `box`.
Resample parse_resample(std::string_view name);
std::string_view name(Resample resample);

/// Brings an image to another size as Pillow does, bit by bit: rows first, then columns, each pixel
/// rounded to a byte after either, and a filter that grows with the step when images shrink.
Image resize(const Image& image, std::int64_t height, std::int64_t width, Resample resample);

}  // namespace lathe::data
