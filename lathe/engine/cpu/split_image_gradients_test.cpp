// The gradients of convolutions in parts and of rounded ones, with those of what is around them.

#include <bit>
#include <utility>

#include "lathe/engine/cpu/split_window_cases.h"

namespace lathe::engine::split_windows {
namespace {

class EveryWindowGradient : public EveryWindow {};
class EverySplitWindowGradient : public EveryWindow {};

TEST_P(EverySplitWindowGradient, AddsUpTheGradientOfTheFilters) {
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

// Sums that stay in their registers from image to image.
TEST_P(EveryWindowGradient, AddsUpTheGradientsOfSomeImagesAsOfOneAfterAnother) {
  constexpr std::int64_t kImages = 3;
  for (const bool is_rounded : kinds_of_numbers())
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
TEST_P(EveryWindowGradient, AddsRoundedGradientsOfAllThatIsAroundAConvolution) {
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

TEST_P(EveryWindowGradient, ReadsAndWritesBfloat16NumbersAsItDoesFloats) {
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

const auto name_of_way = [](const auto& table) { return std::string(table.param->name); };
INSTANTIATE_TEST_SUITE_P(, EveryWindowGradient, testing::ValuesIn(every_split_window_kernels()),
                         name_of_way);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryWindowGradient);
INSTANTIATE_TEST_SUITE_P(, EverySplitWindowGradient, testing::ValuesIn(every_way_with_parts()),
                         name_of_way);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EverySplitWindowGradient);

}  // namespace
}  // namespace lathe::engine::split_windows
