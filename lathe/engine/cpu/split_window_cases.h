#pragma once

// For the tests of convolutions in parts and of rounded ones: problems that every kind of tiles
// must solve, forward and back.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/cpu/split_images.h"

namespace lathe::engine::split_windows {

/// One convolution: images of height x width, windows of rows x columns that reach so far outside.
struct Shape {
  std::int64_t channels, filters, height, width, rows, columns, top, left, bottom, right;
};
inline constexpr Shape kShapes[] = {
    {16, 16, 28, 28, 3, 3, 1, 1, 1, 1}, {32, 16, 7, 7, 3, 3, 1, 1, 1, 1},
    {16, 48, 5, 9, 3, 3, 1, 1, 1, 1},   {16, 32, 6, 11, 2, 3, 0, 1, 0, 1},
    {32, 32, 4, 3, 5, 5, 2, 2, 2, 2},   {16, 16, 1, 1, 3, 3, 1, 1, 1, 1},
    {16, 16, 9, 8, 3, 2, 0, 0, 0, 0},   {16, 16, 6, 6, 4, 4, 1, 1, 2, 2},
    {64, 96, 4, 15, 3, 3, 1, 1, 1, 1},
};

inline ImageProduct product_of(const Shape& shape) {
  const std::int64_t rows = shape.height + shape.top + shape.bottom - shape.rows + 1;
  const std::int64_t columns = shape.width + shape.left + shape.right - shape.columns + 1;
  return {
      .x = {1, shape.channels, shape.height, shape.width, true},
      .y = {1, shape.filters, rows, columns, true},
      .groups = 1,
      .axes = {{rows, shape.rows, 1, -shape.top, 1}, {columns, shape.columns, 1, -shape.left, 1}}};
}

inline std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = normal(random);
  return result;
}

/// Calls visit(place in y, place in x, tap) for all pixels that windows see.
template <typename Visit>
void over_windows(const ImageProduct& product, const Visit& visit) {
  const ImageProduct::Axis &rows = product.axes[0], &columns = product.axes[1];
  for (std::int64_t i = 0; i < rows.places; ++i)
    for (std::int64_t j = 0; j < columns.places; ++j)
      for (std::int64_t p = 0; p < rows.taps; ++p)
        for (std::int64_t q = 0; q < columns.taps; ++q) {
          const std::int64_t line = i + rows.first + p, column = j + columns.first + q;
          if (line < 0 || line >= product.x.height || column < 0 || column >= product.x.width)
            continue;
          visit(i * columns.places + j, line * product.x.width + column, p * columns.taps + q);
        }
}

/// A convolution with its operands and both kinds of filters.
struct Case {
  ImageProduct product;
  SplitFrame frame;
  std::vector<float> x, weight, dy;  // the weight is [filters, channels, taps]
  PackedFilters filters;
  SplitFilters in_parts;

  Case(const Shape& shape, const SplitWindowKernels& split, bool is_rounded = false)
      : product(product_of(shape)), frame(*split_frame(product, is_rounded)) {
    const std::int64_t taps = shape.rows * shape.columns;
    x = random_floats(product.x.size(), 1);
    weight = random_floats(shape.filters * shape.channels * taps, 2);
    dy = random_floats(product.y.size(), 3);
    FilterPlaces places{0, shape.channels * taps, taps, {}, {}};
    for (std::int64_t p = 0; p < shape.rows; ++p) places.rows.push_back(p * shape.columns);
    for (std::int64_t q = 0; q < shape.columns; ++q) places.columns.push_back(q);
    const Kernels& floats = kernels(Isa::Avx512);
    filters.pack(floats, product, weight.data(), places);
    in_parts.pack(split, product, floats.gemm_grain().columns, filters, is_rounded);
  }
  std::size_t taps() const { return static_cast<std::size_t>(frame.rows * frame.columns); }
  std::size_t channels() const { return static_cast<std::size_t>(frame.channels); }
  std::size_t num_filters() const { return static_cast<std::size_t>(product.y.channels); }
};

/// A suite that runs once on each way of this machine.
class EveryWindow : public testing::TestWithParam<const SplitWindowKernels*> {
 protected:
  const SplitWindowKernels& table() const { return *GetParam(); }
  // Rounded ones, and floats in parts where this way has them.
  std::vector<bool> kinds_of_numbers() const {
    return table().splits ? std::vector<bool>{false, true} : std::vector<bool>{true};
  }

  static AlignedBuffer filled(std::int64_t bytes) {
    AlignedBuffer buffer(bytes);
    std::memset(buffer.data(), 0xff, static_cast<std::size_t>(bytes));
    return buffer;
  }
  bool multiply(const Case& c, const float* bias, std::vector<float>& y) const {
    const AlignedBuffer scratch = filled(table().scratch_bytes(c.frame, c.product.y.channels));
    return table().multiply({.frame = c.frame,
                             .n = c.product.y.channels,
                             .is_rounded = c.in_parts.is_rounded(),
                             .x = {c.x.data(), false},
                             .filters = c.in_parts.filters(),
                             .bias = bias,
                             .y = {y.data(), false},
                             .next = nullptr,
                             .scratch = scratch.data()});
  }
  bool add_gradient(const Case& c, std::vector<float>& dw, bool accumulate) const {
    const AlignedBuffer scratch =
        filled(table().gradient_scratch_bytes(c.frame, c.product.y.channels));
    return table().add_gradient({.frame = c.frame,
                                 .n = c.product.y.channels,
                                 .images = 1,
                                 .is_rounded = c.in_parts.is_rounded(),
                                 .x = {c.x.data(), false},
                                 .dy = {c.dy.data(), false},
                                 .dw = dw.data(),
                                 .dw_stride = static_cast<std::int64_t>(c.taps() * c.channels()),
                                 .accumulate = accumulate,
                                 .scratch = scratch.data()});
  }
};

/// The ways that have floats in parts, too.
inline std::vector<const SplitWindowKernels*> every_way_with_parts() {
  std::vector<const SplitWindowKernels*> ways = every_split_window_kernels();
  std::erase_if(ways, [](const SplitWindowKernels* way) { return !way->splits; });
  return ways;
}

/// A sum without rounding, and that of its terms' sizes.
struct ExactSum {
  double value = 0, magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

/// Six products for each number under a window are exact, and each is added once; what is left out
/// is at most 2^-23 of the product.
inline double tolerance(const ExactSum& sum, double products) {
  constexpr double kUnit = 0x1p-24;
  return (6 * products + 3.5) * kUnit * sum.magnitude;
}

/// The nearest bfloat16 number.
inline float rounded(float a) {
  std::uint32_t bits;
  std::memcpy(&bits, &a, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&a, &bits, sizeof bits);
  return a;
}

/// A number for each channel: centers, and slopes of about 1.
struct ChannelNumbers {
  std::vector<float> center, slope, bias, factor;
  ChannelNumbers(std::int64_t channels, unsigned seed)
      : center(random_floats(channels, seed)),
        slope(random_floats(channels, seed + 1)),
        bias(random_floats(channels, seed + 2)),
        factor(random_floats(channels, seed + 3)) {}
};

}  // namespace lathe::engine::split_windows
