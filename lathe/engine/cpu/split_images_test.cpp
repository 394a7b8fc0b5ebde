#include "lathe/engine/cpu/split_images.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/split_window_cases.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine::split_windows {
namespace {

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

class EverySplitWindow : public EveryWindow {};

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

// Sums of rounded numbers, whose products are exact; results have eight bits.
TEST_P(EveryWindow, MultipliesRoundedNumbers) {
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

TEST_P(EveryWindow, AppliesANormInFrontAndSumsTheMomentsOfItsResults) {
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

TEST_P(EveryWindow, LeavesNumbersThatAreTooLargeToFloats) {
  for (const bool is_rounded : kinds_of_numbers())
    for (const float large : {0x1p90f, std::numeric_limits<float>::infinity(), NAN}) {
      Case c({16, 16, 5, 5, 3, 3, 1, 1, 1, 1}, table(), is_rounded);
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

// What reads results has the same numbers whether they lie as floats or not.
TEST_P(EveryWindow, RoundsTheResultsOfFiltersThatAreTooLarge) {
  const Shape shape = kShapes[0];
  Case c(shape, table(), true);
  c.weight[5] = 0x1p21f;
  const Kernels& floats = kernels(Isa::Avx512);
  c.filters.pack(floats, c.product, c.weight.data(), {0, 16 * 9, 9, {0, 3, 6}, {0, 1, 2}});
  c.in_parts.pack(table(), c.product, floats.gemm_grain().columns, c.filters, true);
  ASSERT_FALSE(c.in_parts.is_packed());
  const auto multiply_all = [&](void* y, bool y_is_narrow, std::vector<float>& seen) {
    ImageCalls calls;
    calls.done = [&](std::int64_t, const float* of_image) {
      seen.assign(of_image, of_image + c.product.y.size());
    };
    calls.y_is_narrow = y_is_narrow;
    std::vector<AlignedBuffer> scratch(1);
    const ParallelTasks in_order = [](std::int64_t count, const auto& task) {
      for (std::int64_t i = 0; i < count; ++i) task(i, 0);
    };
    multiply_images_in_parts(floats, table(), c.product, c.frame, c.filters, c.in_parts,
                             {.x = c.x.data(), .y = static_cast<float*>(y)}, scratch, in_order,
                             calls);
  };
  std::vector<float> y(static_cast<std::size_t>(c.product.y.size())), seen, seen_narrow;
  std::vector<std::uint16_t> narrow(y.size());
  multiply_all(y.data(), false, seen);
  multiply_all(narrow.data(), true, seen_narrow);
  EXPECT_EQ(seen, y);
  EXPECT_EQ(seen_narrow, y);
  std::vector<float> alone(y.size());
  AlignedBuffer scratch;
  multiply_image_in_parts(floats, table(), c.product, c.frame, c.filters, c.in_parts,
                          {.x = c.x.data(), .y = alone.data()}, nullptr, scratch);
  EXPECT_EQ(alone, y);
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], rounded(y[i]));
    ASSERT_EQ(std::bit_cast<float>(std::uint32_t{narrow[i]} << 16), y[i]);
  }
}

const auto name_of_way = [](const auto& table) { return std::string(table.param->name); };
INSTANTIATE_TEST_SUITE_P(, EveryWindow, testing::ValuesIn(every_split_window_kernels()),
                         name_of_way);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryWindow);
INSTANTIATE_TEST_SUITE_P(, EverySplitWindow, testing::ValuesIn(every_way_with_parts()),
                         name_of_way);
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
}  // namespace lathe::engine::split_windows
