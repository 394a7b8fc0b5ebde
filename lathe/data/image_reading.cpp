#include "lathe/data/image_reading.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

constexpr std::int64_t kMostSide = 1 << 14;
constexpr std::int64_t kMostPixels = 1 << 24;

template <typename Number>
Number number_of(std::string_view text, std::string_view expected) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (text.empty() || error != std::errc{} || end != last)
    fail("\"{}\": expected {}", text, expected);
  return number;
}

std::vector<std::string_view> split(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void check_side(std::int64_t side) {
  if (side < 1 || side > kMostSide) fail("{}: expected 1 to {} pixels", side, kMostSide);
}

void check_sides(std::string_view key, std::int64_t height, std::int64_t width) {
  if (height == 0 && width == 0) return;
  with_place(key, [&] {
    check_side(height);
    check_side(width);
  });
}

// "224" is a square.
void read_sides(std::string_view text, std::int64_t& height, std::int64_t& width) {
  const std::vector<std::string_view> sides = split(text, 'x');
  constexpr std::string_view kExpected = "pixels, or ROWSxCOLUMNS";
  if (sides.size() > 2) fail("\"{}\": expected {}", text, kExpected);
  height = number_of<std::int64_t>(sides.front(), kExpected);
  width = number_of<std::int64_t>(sides.back(), kExpected);
  for (const std::int64_t side : {height, width}) check_side(side);
}

std::vector<double> read_channels(std::string_view text) {
  std::vector<double> values;
  for (const std::string_view part : split(text, '/'))
    values.push_back(number_of<double>(part, "a number, or RED/GREEN/BLUE"));
  return values;
}

void check_channels(std::string_view key, const std::vector<double>& values) {
  if (values.size() != 0 && values.size() != 1 && values.size() != 3)
    fail("{}: has {} numbers, expected 1, or 3 for red, green and blue", key, values.size());
  for (const double value : values)
    if (!std::isfinite(value)) fail("{} {}: expected a finite number", key, value);
}

double channel_of(const std::vector<double>& values, std::int64_t channel, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values.at(static_cast<std::size_t>(channel));
}

struct Sides {
  std::int64_t height, width;
};

Sides resized_sides(const Image& image, const ImageReading& reading) {
  if (reading.height > 0) return {reading.height, reading.width};
  if (reading.shortest == 0) return {image.height, image.width};
  // The longer side is cut to whole pixels, as torchvision and Hugging Face do.
  const auto longer = [&](std::int64_t side, std::int64_t other) {
    return reading.shortest * side / other;
  };
  return image.height <= image.width ? Sides{reading.shortest, longer(image.width, image.height)}
                                     : Sides{longer(image.height, image.width), reading.shortest};
}

void set(ImageReading& reading, std::string_view key, std::string_view value) {
  if (key == "resize") {
    read_sides(value, reading.height, reading.width);
    reading.shortest = 0;
  } else if (key == "shortest") {
    reading.shortest = number_of<std::int64_t>(value, "pixels");
    check_side(reading.shortest);
    reading.height = reading.width = 0;
  } else if (key == "resample") {
    reading.resample = parse_resample(value);
  } else if (key == "crop") {
    read_sides(value, reading.crop_height, reading.crop_width);
  } else if (key == "white") {
    reading.white = number_of<double>(value, "a number");
  } else if (key == "mean") {
    reading.mean = read_channels(value);
  } else {
    reading.deviation = read_channels(value);
  }
}

}  // namespace

void check_image_reading(const ImageReading& reading) {
  check_sides("resize", reading.height, reading.width);
  check_sides("shortest", reading.shortest, reading.shortest);
  if (reading.height != 0 && reading.shortest != 0) fail("resize and shortest: expected one");
  check_sides("crop", reading.crop_height, reading.crop_width);
  if (reading.height > 0 &&
      (reading.crop_height > reading.height || reading.crop_width > reading.width))
    fail("crop {}x{}: is larger than the {}x{} that images are resized to", reading.crop_height,
         reading.crop_width, reading.height, reading.width);
  if (!(reading.white > 0) || !std::isfinite(reading.white))
    fail("white {}: expected a number above 0", reading.white);
  check_channels("mean", reading.mean);
  check_channels("deviation", reading.deviation);
  for (const double deviation : reading.deviation)
    if (!(deviation > 0)) fail("deviation {}: expected a number above 0", deviation);
}

ImageReading parse_image_reading(std::string_view text, ImageReading base) {
  static const std::vector<std::string> kKeys = {"colour", "crop",     "deviation", "mean",
                                                 "resize", "resample", "shortest",  "white"};
  if (text.empty()) return base;
  std::set<std::string> given;
  for (const std::string_view item : split(text, ',')) {
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string key(item.substr(0, equals));
    if (std::ranges::find(kKeys, key) == kKeys.end()) throw unknown_name("setting", key, kKeys);
    if (!given.insert(key).second) fail("{} is there twice", key);
    if (key == "colour") {
      if (equals != item.size()) fail("{}: expected colour alone", item);
      base.is_colour = true;
      continue;
    }
    if (equals == item.size()) fail("{}: expected {}=VALUE", key, key);
    with_place(key, [&] { set(base, key, item.substr(equals + 1)); });
  }
  // Each alone replaces the other of the base.
  if (given.contains("resize") && given.contains("shortest"))
    fail("resize and shortest: expected one");
  check_image_reading(base);
  return base;
}

std::string to_text(const ImageReading& reading) {
  std::vector<std::string> items;
  const auto sides = [&](const char* key, std::int64_t height, std::int64_t width) {
    if (height > 0) items.push_back(fmt::format("{}={}x{}", key, height, width));
  };
  sides("resize", reading.height, reading.width);
  if (reading.shortest > 0) items.push_back(fmt::format("shortest={}", reading.shortest));
  if (reading.resample != Resample::Bilinear)
    items.push_back(fmt::format("resample={}", name(reading.resample)));
  sides("crop", reading.crop_height, reading.crop_width);
  if (reading.is_colour) items.emplace_back("colour");
  if (reading.white != 1) items.push_back(fmt::format("white={}", reading.white));
  if (!reading.mean.empty()) items.push_back(fmt::format("mean={}", fmt::join(reading.mean, "/")));
  if (!reading.deviation.empty())
    items.push_back(fmt::format("deviation={}", fmt::join(reading.deviation, "/")));
  return fmt::format("{}", fmt::join(items, ","));
}

Image prepare(Image image, const ImageReading& reading) {
  if (reading.is_colour || reading.mean.size() == 3 || reading.deviation.size() == 3)
    image = to_colour(std::move(image));
  const auto [height, width] = resized_sides(image, reading);
  if (height > kMostPixels / width)
    fail("would be resized to {} by {}, expected at most {} pixels", height, width, kMostPixels);
  if (height != image.height || width != image.width)
    image = resize(image, height, width, reading.resample);
  if (reading.crop_height == 0) return image;
  if (reading.crop_height > image.height || reading.crop_width > image.width)
    fail("is {} by {}{}, from which {} by {} cannot be cut", image.height, image.width,
         reading.height + reading.shortest > 0 ? " when resized" : "", reading.crop_height,
         reading.crop_width);
  return crop_middle(image, reading.crop_height, reading.crop_width);
}

float pixel_value(const ImageReading& reading, std::int64_t channel, unsigned char byte) {
  // Division, not multiplication by the inverse: 255 is exactly `white`.
  float value = reading.white == 1
                    ? static_cast<float>(byte) / 255.0f
                    : static_cast<float>(static_cast<double>(byte) * reading.white / 255.0);
  value -= static_cast<float>(channel_of(reading.mean, channel, 0));
  return value / static_cast<float>(channel_of(reading.deviation, channel, 1));
}

void append_values(std::vector<float>& values, const Image& image, const ImageReading& reading) {
  const std::size_t size = image.plane_size();
  values.reserve(values.size() + image.bytes.size());
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    std::array<float, 256> table;
    for (std::size_t byte = 0; byte < table.size(); ++byte)
      table[byte] = pixel_value(reading, channel, static_cast<unsigned char>(byte));
    for (const unsigned char byte :
         std::span(image.bytes).subspan(static_cast<std::size_t>(channel) * size, size))
      values.push_back(table[byte]);
  }
}

}  // namespace lathe::data
