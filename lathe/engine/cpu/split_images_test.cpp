#include "lathe/engine/cpu/split_images.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

// One convolution: images of height x width, windows of rows x columns that reach so far outside.
struct Shape {
  std::int64_t channels, filters, height, width, rows, columns, top, left, bottom, right;
};
constexpr Shape kShapes[] = {
    {16, 16, 28, 28, 3, 3, 1, 1, 1, 1}, {32, 16, 7, 7, 3, 3, 1, 1, 1, 1},
    {16, 48, 5, 9, 3, 3, 1, 1, 1, 1},   {16, 32, 6, 11, 2, 3, 0, 1, 0, 1},
    {32, 32, 4, 3, 5, 5, 2, 2, 2, 2},   {16, 16, 1, 1, 3, 3, 1, 1, 1, 1},
    {16, 16, 9, 8, 3, 2, 0, 0, 0, 0},   {16, 16, 6, 6, 4, 4, 1, 1, 2, 2},
};

ImageProduct product_of(const Shape& shape) {
  const std::int64_t rows = shape.height + shape.top + shape.bottom - shape.rows + 1;
  const std::int64_t columns = shape.width + shape.left + shape.right - shape.columns + 1;
  return {
      .x = {1, shape.channels, shape.height, shape.width, true},
      .y = {1, shape.filters, rows, columns, true},
      .groups = 1,
      .axes = {{rows, shape.rows, 1, -shape.top, 1}, {columns, shape.columns, 1, -shape.left, 1}}};
}

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = normal(random);
  return result;
}

// Calls visit(place in y, place in x, tap) for all pixels that windows see.
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

// A convolution with its operands and both kinds of filters.
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

class EverySplitWindow : public testing::TestWithParam<const SplitWindowKernels*> {
 protected:
  const SplitWindowKernels& table() const { return *GetParam(); }

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

struct ExactSum {
  double value = 0, magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

// Six products for each number under a window are exact, and each is added once; what is left out
// is at most 2^-23 of the product.
double tolerance(const ExactSum& sum, double products) {
  constexpr double kUnit = 0x1p-24;
  return (6 * products + 3.5) * kUnit * sum.magnitude;
}

std::vector<ExactSum> exact_results(const Case& c, const std::vector<float>& bias) {
  std::vector<ExactSum> sums(static_cast<std::size_t>(c.product.y.size()));
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(bias[i % c.num_filters()]);
  over_windows(c.product, [&](std::int64_t y, std::int64_t x, std::int64_t tap) {
    for (std::size_t f = 0; f < c.num_filters(); ++f)
      for (std::size_t k = 0; k < c.channels(); ++k)
        sums[static_cast<std::size_t>(y) * c.num_filters() + f].add(
            double{c.x[static_cast<std::size_t>(x) * c.channels() + k]} *
            c.weight[(f * c.channels() + k) * c.taps() + static_cast<std::size_t>(tap)]);
  });
  return sums;
}

TEST_P(EverySplitWindow, AgreesWithADoubleLoop) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape.height << " x " << shape.width << ", window "
                                    << shape.rows << " x " << shape.columns);
    const Case c(shape, table());
    const std::vector<float> bias = random_floats(shape.filters, 4);
    std::vector<float> y(static_cast<std::size_t>(c.product.y.size()), NAN);
    ASSERT_TRUE(multiply(c, bias.data(), y));
    const std::vector<ExactSum> expected = exact_results(c, bias);
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], expected[i].value,
                  tolerance(expected[i], static_cast<double>(c.taps() * c.channels())))
          << i;
  }
}

TEST_P(EverySplitWindow, AddsUpTheGradientOfTheFilters) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape.height << " x " << shape.width << ", window "
                                    << shape.rows << " x " << shape.columns);
    const Case c(shape, table());
    std::vector<float> dw(c.num_filters() * c.taps() * c.channels(), NAN);
    ASSERT_TRUE(add_gradient(c, dw, false));
    ASSERT_TRUE(add_gradient(c, dw, true));
    std::vector<ExactSum> sums(dw.size());
    over_windows(c.product, [&](std::int64_t y, std::int64_t x, std::int64_t tap) {
      for (std::size_t f = 0; f < c.num_filters(); ++f)
        for (std::size_t k = 0; k < c.channels(); ++k)
          sums[(f * c.taps() + static_cast<std::size_t>(tap)) * c.channels() + k].add(
              2.0 * c.dy[static_cast<std::size_t>(y) * c.num_filters() + f] *
              c.x[static_cast<std::size_t>(x) * c.channels() + k]);
    });
    const auto windows = static_cast<double>(c.frame.out_height * c.frame.out_width);
    for (std::size_t i = 0; i < dw.size(); ++i)
      ASSERT_NEAR(dw[i], sums[i].value, tolerance(sums[i], 2 * windows)) << i;
  }
}

float rounded(float a) {
  std::uint32_t bits;
  std::memcpy(&bits, &a, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&a, &bits, sizeof bits);
  return a;
}

// Sums of rounded numbers, whose products are exact; results have eight bits.
TEST_P(EverySplitWindow, MultipliesRoundedNumbers) {
  for (const Shape& shape : kShapes) {
    Case c(shape, table(), true);
    std::vector<float> bias = random_floats(shape.filters, 4);
    std::vector<float> y(static_cast<std::size_t>(c.product.y.size()), NAN);
    std::vector<float> dw(c.num_filters() * c.taps() * c.channels(), NAN);
    ASSERT_TRUE(multiply(c, bias.data(), y));
    ASSERT_TRUE(add_gradient(c, dw, false));
    for (std::vector<float>* values : {&c.x, &c.weight, &c.dy, &bias})
      for (float& value : *values) value = rounded(value);
    const std::vector<ExactSum> expected = exact_results(c, bias);
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y[i], rounded(y[i]));
      ASSERT_NEAR(y[i], expected[i].value,
                  tolerance(expected[i], static_cast<double>(c.taps() * c.channels())) +
                      std::abs(expected[i].value) * 0x1p-8)
          << i;
    }
    std::vector<ExactSum> sums(dw.size());
    over_windows(c.product, [&](std::int64_t place, std::int64_t x, std::int64_t tap) {
      for (std::size_t f = 0; f < c.num_filters(); ++f)
        for (std::size_t k = 0; k < c.channels(); ++k)
          sums[(f * c.taps() + static_cast<std::size_t>(tap)) * c.channels() + k].add(
              double{c.dy[static_cast<std::size_t>(place) * c.num_filters() + f]} *
              c.x[static_cast<std::size_t>(x) * c.channels() + k]);
    });
    const auto windows = static_cast<double>(c.frame.out_height * c.frame.out_width);
    for (std::size_t i = 0; i < dw.size(); ++i)
      ASSERT_NEAR(dw[i], sums[i].value, tolerance(sums[i], windows)) << i;
  }
}

// Sums that stay in their registers from image to image.
TEST_P(EverySplitWindow, AddsUpTheGradientsOfSomeImagesAsOfOneAfterAnother) {
  constexpr std::int64_t kImages = 3;
  for (const bool is_rounded : {false, true})
    for (const Shape& shape : kShapes) {
      const Case c(shape, table(), is_rounded);
      std::vector<float> one(c.num_filters() * c.taps() * c.channels(), NAN), all = one;
      for (std::int64_t i = 0; i < kImages; ++i) ASSERT_TRUE(add_gradient(c, one, i > 0));
      std::vector<float> x, dy;
      for (std::int64_t i = 0; i < kImages; ++i) {
        x.insert(x.end(), c.x.begin(), c.x.end());
        dy.insert(dy.end(), c.dy.begin(), c.dy.end());
      }
      const AlignedBuffer scratch =
          filled(kImages * table().gradient_scratch_bytes(c.frame, c.product.y.channels));
      ASSERT_TRUE(
          table().add_gradient({.frame = c.frame,
                                .n = c.product.y.channels,
                                .images = kImages,
                                .is_rounded = is_rounded,
                                .x = {x.data(), false},
                                .dy = {dy.data(), false},
                                .dw = all.data(),
                                .dw_stride = static_cast<std::int64_t>(c.taps() * c.channels()),
                                .accumulate = false,
                                .scratch = scratch.data()}));
      EXPECT_EQ(all, one);
    }
}

// A number for each channel: centers, and slopes of about 1.
struct ChannelNumbers {
  std::vector<float> center, slope, bias, factor;
  ChannelNumbers(std::int64_t channels, unsigned seed)
      : center(random_floats(channels, seed)),
        slope(random_floats(channels, seed + 1)),
        bias(random_floats(channels, seed + 2)),
        factor(random_floats(channels, seed + 3)) {}
};

// What a norm, a residual or none, and relu make of x.
std::vector<float> through_front(const Case& c, const ChannelNumbers& numbers,
                                 const float* residual) {
  std::vector<float> made(c.x.size());
  kernels(Isa::Avx512)
      .scale_channels({.rows = c.frame.height * c.frame.width,
                       .n = c.frame.channels,
                       .x = c.x.data(),
                       .center = numbers.center.data(),
                       .slope = numbers.slope.data(),
                       .bias = numbers.bias.data(),
                       .residual = residual,
                       .has_relu = true,
                       .y = made.data()});
  return made;
}

TEST_P(EverySplitWindow, AppliesANormInFrontAndSumsTheMomentsOfItsResults) {
  for (const bool has_residual : {false, true})
    for (const bool is_kept : {false, true})
      for (const Shape& shape : kShapes) {
        Case c(shape, table(), true);
        const ChannelNumbers numbers(shape.channels, 5);
        const std::vector<float> residual = random_floats(c.product.x.size(), 9);
        const std::vector<float> bias = random_floats(shape.filters, 4);
        const AlignedBuffer scratch = filled(table().scratch_bytes(c.frame, shape.filters));
        std::vector<float> kept(c.x.size(), NAN), y(static_cast<std::size_t>(c.product.y.size()));
        std::vector<double> moments(2 * c.num_filters(), NAN);
        ASSERT_TRUE(table().multiply(
            {.frame = c.frame,
             .n = shape.filters,
             .is_rounded = true,
             .x = {c.x.data(), false},
             .filters = c.in_parts.filters(),
             .bias = bias.data(),
             .y = {y.data(), false},
             .next = nullptr,
             .scratch = scratch.data(),
             .front = {.center = numbers.center.data(),
                       .slope = numbers.slope.data(),
                       .bias = numbers.bias.data(),
                       .residual = {has_residual ? residual.data() : nullptr, false},
                       .made = is_kept ? kept.data() : nullptr},
             .moments = moments.data()}));
        c.x = through_front(c, numbers, has_residual ? residual.data() : nullptr);
        if (is_kept) {
          EXPECT_EQ(kept, c.x);
        }
        std::vector<float> expected(y.size());
        ASSERT_TRUE(multiply(c, bias.data(), expected));
        EXPECT_EQ(y, expected);
        const auto windows = static_cast<double>(c.frame.out_height * c.frame.out_width);
        for (std::size_t f = 0; f < c.num_filters(); ++f) {
          double mean = 0, squares = 0;
          for (std::size_t i = f; i < y.size(); i += c.num_filters()) mean += y[i] / windows;
          for (std::size_t i = f; i < y.size(); i += c.num_filters())
            squares += (y[i] - mean) * (y[i] - mean);
          // A line of sums in floats, of distances from the first result.
          const double origin = std::abs(y[f] - mean);
          const double most = origin * origin * windows + squares;
          EXPECT_NEAR(moments[f], mean, 0x1p-18 * std::sqrt(most / windows));
          EXPECT_NEAR(moments[c.num_filters() + f], squares, 0x1p-18 * most);
        }
      }
}

// The windows of dy that the gradient of x has, and the filters turned around.
struct BackwardCase {
  Case forward;
  ImageProduct product;
  PackedFilters filters;
  SplitFilters in_parts;
  BackwardCase(const Shape& shape, const SplitWindowKernels& split)
      : forward(shape, split, true), product(forward.product) {
    const auto back = [](ImageProduct::Axis axis, std::int64_t places) {
      return ImageProduct::Axis{places, axis.taps, 1, -(axis.taps - 1 + axis.first), 1};
    };
    std::swap(product.x, product.y);
    product.axes[0] = back(product.axes[0], product.y.height);
    product.axes[1] = back(product.axes[1], product.y.width);
    const std::int64_t taps = shape.rows * shape.columns;
    FilterPlaces places{0, taps, shape.channels * taps, {}, {}};
    for (std::int64_t p = shape.rows - 1; p >= 0; --p) places.rows.push_back(p * shape.columns);
    for (std::int64_t q = shape.columns - 1; q >= 0; --q) places.columns.push_back(q);
    const Kernels& floats = kernels(Isa::Avx512);
    filters.pack(floats, product, forward.weight.data(), places);
    in_parts.pack(split, product, floats.gemm_grain().columns, filters, true);
  }
};

// One kernel does what five do one after another; of three images one is too large.
TEST_P(EverySplitWindow, AddsRoundedGradientsOfAllThatIsAroundAConvolution) {
  constexpr std::int64_t kImages = 3;
  const Kernels& floats = kernels(Isa::Avx512);
  for (const Shape& shape : kShapes)
    for (int way = 0; way < 5; ++way) {
      const bool has_relu = way > 0, is_made = way > 2, has_more = way % 2 == 0;
      BackwardCase c(shape, table());
      const SplitFrame frame = c.forward.frame, back = *split_frame(c.product, true);
      const std::int64_t of_x = c.forward.product.x.size(), of_y = c.forward.product.y.size();
      const std::int64_t pixels = frame.height * frame.width;
      const std::int64_t windows = frame.out_height * frame.out_width;
      const std::vector<float> dy = random_floats(kImages * of_y, 11),
                               y = random_floats(kImages * of_y, 12);
      const std::vector<float> norm = random_floats(kImages * of_x, 13),
                               more = random_floats(kImages * of_x, 14);
      std::vector<float> x = random_floats(kImages * of_x, 15);
      const ChannelNumbers behind(shape.filters, 20), front(shape.channels, 30);
      const std::size_t weights = c.forward.weight.size();
      for (const std::int64_t finite : {kImages, kImages - 1}) {
        if (finite < kImages) x.back() = is_made ? 0.0f : 0x1p60f;
        std::vector<float> given = is_made ? norm : x;
        if (finite < kImages) given.back() = 0x1p120f * (front.slope.back() > 0 ? 1.0f : -1.0f);
        std::vector<float> dx(given.size(), NAN), dw(weights, NAN);
        std::vector<double> sums(static_cast<std::size_t>(kImages * 2 * shape.channels), NAN);
        const AlignedBuffer scratch =
            filled(table().rounded_gradients_scratch_bytes(frame, back, kImages));
        RoundedGradientsArgs args{
            .weight = {.frame = frame,
                       .n = shape.filters,
                       .images = kImages,
                       .is_rounded = true,
                       .x = {given.data(), false},
                       .dy = {dy.data(), false},
                       .dw = dw.data(),
                       .dw_stride = shape.rows * shape.columns * shape.channels,
                       .accumulate = false,
                       .scratch = scratch.data()},
            .back = back,
            .norm = {.y = {y.data(), false},
                     .center = behind.center.data(),
                     .factor = behind.factor.data(),
                     .shift = behind.bias.data(),
                     .slope = behind.slope.data()},
            .front = {},
            .relu = {},
            .filters = c.in_parts.filters(),
            .dx = {dx.data(), false},
            .has_next = false};
        if (is_made)
          args.front = {.center = front.center.data(),
                        .slope = front.slope.data(),
                        .bias = front.bias.data(),
                        .residual = {},
                        .made = nullptr};
        if (has_relu)
          args.relu = {.more = {has_more ? more.data() : nullptr, false},
                       .norm = {is_made ? given.data() : norm.data(), false},
                       .center = front.center.data(),
                       .sums = sums.data()};
        ASSERT_EQ(table().add_rounded_gradients(args), finite);
        std::vector<float> seen = x, g(dy.size()), expected_dw(weights);
        floats.scale_channels_backward({.rows = kImages * windows,
                                        .n = shape.filters,
                                        .dy = dy.data(),
                                        .x = y.data(),
                                        .center = behind.center.data(),
                                        .factor = behind.factor.data(),
                                        .shift = behind.bias.data(),
                                        .slope = behind.slope.data(),
                                        .dx = g.data()});
        if (is_made)
          floats.scale_channels({.rows = kImages * pixels,
                                 .n = shape.channels,
                                 .x = given.data(),
                                 .center = front.center.data(),
                                 .slope = front.slope.data(),
                                 .bias = front.bias.data(),
                                 .residual = nullptr,
                                 .has_relu = true,
                                 .y = seen.data()});
        AlignedBuffer memory;
        for (std::int64_t i = 0; i < finite; ++i) {
          std::vector<float> expected(static_cast<std::size_t>(of_x));
          multiply_image_in_parts(floats, table(), c.product, back, c.filters, c.in_parts,
                                  {.x = g.data() + i * of_y, .y = expected.data()}, nullptr,
                                  memory);
          const AlignedBuffer own = filled(table().gradient_scratch_bytes(frame, shape.filters));
          SplitWindowGradientArgs weight = args.weight;
          weight.images = 1;
          weight.x = {seen.data() + i * of_x, false};
          weight.dy = {g.data() + i * of_y, false};
          weight.dw = expected_dw.data();
          weight.accumulate = i > 0;
          weight.scratch = own.data();
          ASSERT_TRUE(table().add_gradient(weight));
          std::vector<ExactSum> exact(2 * c.forward.channels());
          for (std::int64_t j = 0; has_relu && j < of_x; ++j) {
            const std::int64_t at = i * of_x + j;
            const auto channel = static_cast<std::size_t>(j % shape.channels);
            float& value = expected[static_cast<std::size_t>(j)];
            if (has_more) value += more[static_cast<std::size_t>(at)];
            if (!(seen[static_cast<std::size_t>(at)] > 0)) value = 0;
            exact[channel].add(value);
            exact[c.forward.channels() + channel].add(
                value *
                double{static_cast<const float*>(args.relu.norm.at)[at] - front.center[channel]});
          }
          for (std::int64_t j = 0; j < of_x; ++j)
            ASSERT_EQ(dx[static_cast<std::size_t>(i * of_x + j)],
                      expected[static_cast<std::size_t>(j)])
                << i << ", " << j;
          for (std::size_t j = 0; has_relu && j < exact.size(); ++j)
            EXPECT_NEAR(sums[static_cast<std::size_t>(i) * exact.size() + j], exact[j].value,
                        0x1p-18 * exact[j].magnitude);
        }
        EXPECT_EQ(dw, expected_dw);
      }
    }
}

// Floats that are bfloat16 numbers, and the same numbers as they lie narrow.
struct BothWays {
  std::vector<float> wide;
  std::vector<std::uint16_t> narrow;
  BothWays(std::int64_t count, unsigned seed) : wide(random_floats(count, seed)) {
    for (float& value : wide) {
      value = rounded(value);
      narrow.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
    }
  }
  Lying at(bool is_narrow) const {
    return is_narrow ? Lying{narrow.data(), true} : Lying{wide.data(), false};
  }
};
std::vector<std::uint16_t> upper_halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float value : values)
    result.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  return result;
}

TEST_P(EverySplitWindow, ReadsAndWritesBfloat16NumbersAsItDoesFloats) {
  for (const Shape& shape : kShapes) {
    const BackwardCase c(shape, table());
    const SplitFrame frame = c.forward.frame, back = *split_frame(c.product, true);
    const std::int64_t of_x = c.forward.product.x.size(), of_y = c.forward.product.y.size();
    const BothWays x(of_x, 1), residual(of_x, 2), more(of_x, 3), norm(of_x, 4), dy(of_y, 5),
        y(of_y, 6);
    const ChannelNumbers behind(shape.filters, 20), front(shape.channels, 30);
    std::vector<float> made[2], results(static_cast<std::size_t>(of_y)), dw[2];
    std::vector<std::uint16_t> narrow_results(results.size());
    std::vector<double> moments[2];
    for (const bool is_narrow : {false, true}) {
      const AlignedBuffer scratch = filled(table().scratch_bytes(frame, shape.filters));
      made[is_narrow].resize(static_cast<std::size_t>(of_x));
      moments[is_narrow].resize(2 * c.forward.num_filters());
      ASSERT_TRUE(table().multiply(
          {.frame = frame,
           .n = shape.filters,
           .is_rounded = true,
           .x = x.at(is_narrow),
           .filters = c.forward.in_parts.filters(),
           .bias = nullptr,
           .y = is_narrow ? Written{narrow_results.data(), true} : Written{results.data(), false},
           .next = nullptr,
           .scratch = scratch.data(),
           .front = {.center = front.center.data(),
                     .slope = front.slope.data(),
                     .bias = front.bias.data(),
                     .residual = residual.at(is_narrow),
                     .made = made[is_narrow].data()},
           .moments = moments[is_narrow].data()}));
    }
    EXPECT_EQ(made[0], made[1]);
    EXPECT_EQ(moments[0], moments[1]);
    EXPECT_EQ(narrow_results, upper_halves(results));
    for (const bool has_more : {false, true}) {
      std::vector<float> dx[2];
      std::vector<std::uint16_t> narrow_dx(static_cast<std::size_t>(of_x));
      std::vector<double> sums[2];
      for (const bool is_narrow : {false, true}) {
        const AlignedBuffer scratch =
            filled(table().rounded_gradients_scratch_bytes(frame, back, 1));
        dx[is_narrow].resize(static_cast<std::size_t>(of_x));
        dw[is_narrow].resize(c.forward.weight.size());
        sums[is_narrow].resize(2 * c.forward.channels());
        const RoundedGradientsArgs args{
            .weight = {.frame = frame,
                       .n = shape.filters,
                       .images = 1,
                       .is_rounded = true,
                       .x = x.at(is_narrow),
                       .dy = dy.at(is_narrow),
                       .dw = dw[is_narrow].data(),
                       .dw_stride = shape.rows * shape.columns * shape.channels,
                       .accumulate = false,
                       .scratch = scratch.data()},
            .back = back,
            .norm = {.y = y.at(is_narrow),
                     .center = behind.center.data(),
                     .factor = behind.factor.data(),
                     .shift = behind.bias.data(),
                     .slope = behind.slope.data()},
            .front = {},
            .relu = {.more = has_more ? more.at(is_narrow) : Lying{},
                     .norm = norm.at(is_narrow),
                     .center = front.center.data(),
                     .sums = sums[is_narrow].data()},
            .filters = c.in_parts.filters(),
            .dx = is_narrow && !has_more ? Written{narrow_dx.data(), true}
                                         : Written{dx[is_narrow].data(), false},
            .has_next = false};
        ASSERT_EQ(table().add_rounded_gradients(args), 1);
      }
      EXPECT_EQ(dw[0], dw[1]);
      EXPECT_EQ(sums[0], sums[1]);
      if (has_more) {
        EXPECT_EQ(dx[0], dx[1]);
      } else {
        EXPECT_EQ(narrow_dx, upper_halves(dx[0]));
      }
    }
  }
}

// As for `split_multiply`: the emulation adds six products one by one.
TEST_P(EverySplitWindow, IsAsNearTheTruthAsTheKernelOfFloats) {
  const Case c({64, 64, 14, 14, 3, 3, 1, 1, 1, 1}, table());
  const std::vector<float> bias(c.num_filters(), 0.0f);
  std::vector<float> y(static_cast<std::size_t>(c.product.y.size())), floats = y;
  ASSERT_TRUE(multiply(c, nullptr, y));
  AlignedBuffer scratch;
  KnownCut cut;
  multiply_images(
      kernels(Isa::Avx512), c.product, c.filters, {.x = c.x.data(), .y = floats.data()},
      {&scratch, 1},
      [](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
        for (std::int64_t t = 0; t < tasks; ++t) task(t, 0);
      },
      cut);
  const std::vector<ExactSum> expected = exact_results(c, bias);
  double error = 0, float_error = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    error += std::pow(y[i] - expected[i].value, 2);
    float_error += std::pow(floats[i] - expected[i].value, 2);
  }
  const bool is_emulated = std::string_view(table().name) != "split_window_amx";
  EXPECT_LE(std::sqrt(error), (is_emulated ? 3 : 1) * std::sqrt(float_error));
}

TEST_P(EverySplitWindow, LeavesNumbersThatAreTooLargeToFloats) {
  for (const float large : {0x1p90f, std::numeric_limits<float>::infinity(), NAN}) {
    Case c({16, 16, 5, 5, 3, 3, 1, 1, 1, 1}, table());
    c.x.back() = -large;
    std::vector<float> y(static_cast<std::size_t>(c.product.y.size()), 7.0f);
    EXPECT_FALSE(multiply(c, nullptr, y));
    EXPECT_EQ(y, std::vector<float>(y.size(), 7.0f));
    std::vector<float> dw(c.weight.size(), 7.0f);
    EXPECT_FALSE(add_gradient(c, dw, false));
    c.x.back() = 1.0f;
    c.dy.back() = large;
    EXPECT_FALSE(add_gradient(c, dw, false));
    EXPECT_EQ(dw, std::vector<float>(dw.size(), 7.0f));
  }
}

INSTANTIATE_TEST_SUITE_P(, EverySplitWindow, testing::ValuesIn(every_split_window_kernels()),
                         [](const auto& table) { return std::string(table.param->name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EverySplitWindow);

TEST(SplitFilters, AreNotMadeOfNumbersThatAreTooLarge) {
  const std::vector<const SplitWindowKernels*> ways = every_split_window_kernels();
  if (ways.empty()) GTEST_SKIP() << "this processor has no instructions for bfloat16";
  Case c(kShapes[0], *ways.front());
  EXPECT_TRUE(c.in_parts.is_packed());
  c.weight[5] = NAN;
  c.filters.pack(kernels(Isa::Avx512), c.product, c.weight.data(),
                 {0, 16 * 9, 9, {0, 3, 6}, {0, 1, 2}});
  c.in_parts.pack(*ways.front(), c.product, kernels(Isa::Avx512).gemm_grain().columns, c.filters,
                  false);
  EXPECT_FALSE(c.in_parts.is_packed());
}

// A convolution that is trained: the second of three images has an infinity, which only its own
// results and the gradient of the filters see.
TEST(SplitImages, MultiplyAnImageThatIsNotFiniteAsFloats) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,16,6,6]
    dy = input() : f32[B,32,6,6]
    w = state() : f32[16,16,3,3]
    v = state() : f32[32,16,3,3]
    a = conv2d(x, w) {pads=[1,1,1,1]}
    y = conv2d(a, v) {pads=[1,1,1,1]}
    da = conv2d_input_gradient(dy, v) {pads=[1,1,1,1]} : f32[B,16,6,6]
    dv = conv2d_weight_gradient(dy, a) {pads=[1,1,1,1]} : f32[32,16,3,3]
    u = add(v, dv)
    output y <- y
    output da <- da
    output dv <- dv
    state v <- u)");
  const State state = random_state(graph, 3);
  for (const bool is_finite : {true, false}) {
    Feed feed = random_feed(graph, {{"B", 3}}, 5);
    const std::size_t second = 16 * 6 * 6;
    if (!is_finite)
      for (std::size_t i = 0; i < 36; ++i)
        feed.at("x").mutable_data<float>()[second + i] = std::numeric_limits<float>::infinity();
    const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
    // In tiles of Winograd's an infinity would become NaN around it.
    CpuExecutor executor(graph, state, {.isa = best_isa(), .plain_convolutions = true});
    const Feed results = executor.run(feed);
    expect_near(results, expected, 1e-4);
    ThreadPool pool(3);
    const ExecutionOptions by_threads{.pool = &pool, .isa = best_isa(), .plain_convolutions = true};
    expect_identical(CpuExecutor(graph, state, by_threads).run(feed), results);
  }
}

}  // namespace
}  // namespace lathe::engine
