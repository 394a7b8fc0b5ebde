#include "lathe/engine/cpu/phased_convolution.h"

#include <algorithm>
#include <cstring>

namespace lathe::engine {
namespace {

// Pixels are so short that a call for each of their parts takes longer than to copy them.
void copy_pixels(const float* from, std::int64_t count, float* to) {
  constexpr std::int64_t kAtOnce = 16;
  for (; count >= kAtOnce; count -= kAtOnce, from += kAtOnce, to += kAtOnce)
    std::memcpy(to, from, kAtOnce * sizeof(float));
  for (; count > 0; --count) *to++ = *from++;
}

}  // namespace

bool PhasedConvolution::suits(const Convolution& convolution) {
  const ops::Window& window = convolution.window;
  return convolution.groups == 1 && convolution.x.is_last && convolution.y.is_last &&
         window.dilations[0] == 1 && window.dilations[1] == 1 &&
         (window.strides[0] > 1 || window.strides[1] > 1);
}

PhasedConvolution::PhasedConvolution(const Convolution& convolution)
    : given_(convolution), phased_(convolution) {
  std::int64_t* const sides[] = {&phased_.x.height, &phased_.x.width};
  const std::int64_t places[] = {given_.y.height, given_.y.width};
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t stride = given_.window.strides[axis], taps = given_.window.kernel[axis];
    phases_[axis] = std::min(stride, taps);
    phased_.window.kernel[axis] = (taps - 1) / stride + 1;
    phased_.window.strides[axis] = 1;
    *sides[axis] = places[axis] + phased_.window.kernel[axis] - 1;
  }
  std::ranges::fill(phased_.window.pads, 0);
  phased_.x.channels *= phases_[0] * phases_[1];
}

template <typename Visit>
void PhasedConvolution::over_weights(const Visit& visit) const {
  const ops::Window &window = given_.window, &phased = phased_.window;
  // Where the taps of a filter's first channel go.
  std::vector<std::int64_t> places;
  for (std::int64_t p = 0; p < window.kernel[0]; ++p)
    for (std::int64_t q = 0; q < window.kernel[1]; ++q) {
      const std::int64_t phase = p % window.strides[0] * phases_[1] + q % window.strides[1];
      const std::int64_t tap = p / window.strides[0] * phased.kernel[1] + q / window.strides[1];
      places.push_back(phase * given_.x.channels * phased_.taps() + tap);
    }
  std::int64_t place = 0;
  for (std::int64_t f = 0; f < given_.y.channels; ++f)
    for (std::int64_t c = 0; c < given_.x.channels; ++c)
      for (const std::int64_t tap : places)
        visit(place++, (f * phased_.x.channels + c) * phased_.taps() + tap);
}

std::vector<float> PhasedConvolution::put_weight(const float* weight) const {
  std::vector<float> result(static_cast<std::size_t>(phased_.num_weights()));
  over_weights([&](std::int64_t place, std::int64_t phased) {
    result[static_cast<std::size_t>(phased)] = weight[place];
  });
  return result;
}

void PhasedConvolution::take_weight(const float* phased, float* weight) const {
  over_weights([&](std::int64_t place, std::int64_t from) { weight[place] = phased[from]; });
}

template <typename Visit>
void PhasedConvolution::over_pixels(const Visit& visit) const {
  const Images &x = given_.x, &to = phased_.x;
  const ops::Window& window = given_.window;
  const std::int64_t run = phases_[1];  // pixels
  for (std::int64_t line = 0; line < to.height; ++line)
    for (std::int64_t phase = 0; phase < phases_[0]; ++phase) {
      const std::int64_t row = line * window.strides[0] + phase - window.pads[0];
      const bool is_inside = row >= 0 && row < x.height;
      for (std::int64_t pixel = 0; pixel < to.width; ++pixel) {
        const std::int64_t column = pixel * window.strides[1] - window.pads[1];
        const std::int64_t before = is_inside ? std::clamp<std::int64_t>(-column, 0, run) : run;
        const std::int64_t end = std::clamp<std::int64_t>(x.width - column, before, run);
        visit((row * x.width + column + before) * x.channels,
              ((line * to.width + pixel) * phases_[0] + phase) * run * x.channels,
              before * x.channels, (end - before) * x.channels, (run - end) * x.channels);
      }
    }
}

void PhasedConvolution::put_image(const float* x, float* phased) const {
  over_pixels([&](std::int64_t place, std::int64_t to, std::int64_t before, std::int64_t inside,
                  std::int64_t behind) {
    float* const at = phased + to;
    if (before > 0) std::fill_n(at, before, 0.0f);
    if (inside > 0) copy_pixels(x + place, inside, at + before);
    if (behind > 0) std::fill_n(at + before + inside, behind, 0.0f);
  });
}

void PhasedConvolution::take_image(const float* phased, float* x) const {
  const auto sees_all = [&](int axis, std::int64_t places, std::int64_t size) {
    const std::int64_t stride = given_.window.strides[axis];
    return phases_[axis] == stride && places * stride - given_.window.pads[axis] >= size;
  };
  if (!sees_all(0, phased_.x.height, given_.x.height) ||
      !sees_all(1, phased_.x.width, given_.x.width))
    std::fill_n(x, given_.x.size(), 0.0f);
  over_pixels([&](std::int64_t place, std::int64_t from, std::int64_t before, std::int64_t inside,
                  std::int64_t) {
    if (inside > 0) copy_pixels(phased + from + before, inside, x + place);
  });
}

}  // namespace lathe::engine
