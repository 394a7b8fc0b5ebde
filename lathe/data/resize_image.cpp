#include "lathe/data/resize_image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

constexpr std::array<std::string_view, 5> kNames{"nearest", "lanczos", "bilinear", "bicubic",
                                                 "box"};

double sinc(double x) {
  if (x == 0) return 1;
  const double angle = x * std::numbers::pi;
  return std::sin(angle) / angle;
}

// How far a filter reaches where images do not shrink.
double support_of(Resample resample) {
  switch (resample) {
    case Resample::Lanczos:
      return 3;
    case Resample::Bicubic:
      return 2;
    case Resample::Bilinear:
      return 1;
    default:
      return 0.5;
  }
}

double filter(Resample resample, double x) {
  const double distance = std::abs(x);
  switch (resample) {
    case Resample::Lanczos:
      return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    case Resample::Bicubic: {  // Keys 1981 with a = -1/2
      constexpr double a = -0.5;
      if (distance < 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
      if (distance < 2) return (((distance - 5) * distance + 8) * distance - 4) * a;
      return 0;
    }
    case Resample::Bilinear:
      return distance < 1 ? 1 - distance : 0;
    default:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
  }
}

// The pixels that one pixel of the result is made of, with weights in fixed point.
struct Window {
  std::int64_t begin = 0;
  std::vector<std::int32_t> weights;
};

// A byte times a weight below two leaves 2 bits of 32 for the sum to overshoot.
constexpr int kFractionBits = 32 - 8 - 2;

std::vector<Window> windows_of(std::int64_t from, std::int64_t to, Resample resample) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  std::vector<Window> windows(static_cast<std::size_t>(to));
  if (resample == Resample::Nearest) {
    // Pillow adds steps up, and their rounding decides between two pixels that are as near.
    double at = step * 0.5;
    for (Window& window : windows) {
      window = {std::min(static_cast<std::int64_t>(at), from - 1), {1 << kFractionBits}};
      at += step;
    }
    return windows;
  }
  const double stretch = std::max(step, 1.0), support = support_of(resample) * stretch;
  std::vector<double> weights;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * step;
    const auto begin = std::max(std::int64_t{0}, static_cast<std::int64_t>(middle - support + 0.5));
    const auto end = std::min(from, static_cast<std::int64_t>(middle + support + 0.5));
    weights.clear();
    double sum = 0;
    for (std::int64_t x = begin; x < end; ++x) {
      weights.push_back(
          filter(resample, (static_cast<double>(x) - middle + 0.5) * (1.0 / stretch)));
      sum += weights.back();
    }
    windows[i].begin = begin;
    for (const double weight : weights) {
      const double scaled = (sum == 0 ? weight : weight / sum) * (1 << kFractionBits);
      windows[i].weights.push_back(static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5)));
    }
  }
  return windows;
}

unsigned char to_byte(std::int32_t sum) {
  return static_cast<unsigned char>(std::clamp(sum >> kFractionBits, 0, 255));
}

Image resize_rows(const Image& image, std::int64_t width, Resample resample) {
  const std::vector<Window> windows = windows_of(image.width, width, resample);
  Image result{image.channels, image.height, width, {}};
  result.bytes.reserve(static_cast<std::size_t>(image.channels * image.height * width));
  for (std::int64_t row = 0; row < image.channels * image.height; ++row) {
    const unsigned char* const pixels = image.bytes.data() + row * image.width;
    for (const Window& window : windows) {
      std::int32_t sum = 1 << (kFractionBits - 1);
      const unsigned char* next = pixels + window.begin;
      for (const std::int32_t weight : window.weights) sum += *next++ * weight;
      result.bytes.push_back(to_byte(sum));
    }
  }
  return result;
}

Image resize_columns(const Image& image, std::int64_t height, Resample resample) {
  const std::vector<Window> windows = windows_of(image.height, height, resample);
  Image result{image.channels, height, image.width, {}};
  result.bytes.reserve(static_cast<std::size_t>(image.channels * height * image.width));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(image.width));
  for (std::int64_t channel = 0; channel < image.channels; ++channel)
    for (const Window& window : windows) {
      std::fill(sums.begin(), sums.end(), 1 << (kFractionBits - 1));
      const unsigned char* next =
          image.bytes.data() + (channel * image.height + window.begin) * image.width;
      for (const std::int32_t weight : window.weights)
        for (std::int32_t& sum : sums) sum += *next++ * weight;
      for (const std::int32_t sum : sums) result.bytes.push_back(to_byte(sum));
    }
  return result;
}

}  // namespace

Resample parse_resample(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end())
    throw unknown_name("resample", name, {"bicubic", "bilinear", "box", "lanczos", "nearest"});
  return static_cast<Resample>(found - kNames.begin());
}

std::string_view name(Resample resample) {
  return kNames[static_cast<std::size_t>(resample)];
}

Image resize(const Image& image, std::int64_t height, std::int64_t width, Resample resample) {
  check(height > 0 && width > 0 && image.height > 0 && image.width > 0, "images with pixels");
  Image result = image.width == width ? image : resize_rows(image, width, resample);
  return image.height == height ? result : resize_columns(result, height, resample);
}

}  // namespace lathe::data
