// Windows of whole numbers that are multiplied where they lie, beside the same ones gathered.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "lathe/engine/cpu/code_kernels.h"
#include "lathe/engine/cpu/code_weight.h"

namespace lathe::engine {
namespace {

// Lines of results, windows of a line, filters; lines of a window, pixels of one, their channels,
// and pixels from a window to the next.
struct Windows {
  std::int64_t rows, pixels, n, lines, columns, channels, stride;
  std::int64_t line_pixels() const { return (pixels - 1) * stride + columns; }
  std::int64_t length() const { return columns * channels; }
};
constexpr Windows kWindows[] = {
    {3, 14, 40, 3, 3, 8, 1}, {2, 7, 64, 3, 3, 64, 1},  {1, 1, 1, 1, 1, 4, 1},
    {2, 31, 33, 7, 7, 4, 2}, {4, 15, 32, 1, 1, 32, 2}, {1, 29, 96, 2, 5, 12, 1},
};

std::vector<std::int8_t> random_numbers(std::int64_t count, int low, int high, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> numbers(low, high);
  std::vector<std::int8_t> result(static_cast<std::size_t>(count));
  for (std::int8_t& number : result) number = static_cast<std::int8_t>(numbers(random));
  return result;
}

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = normal(random);
  return result;
}

std::vector<const CodeKernels*> ways_with_windows() {
  std::vector<const CodeKernels*> ways = every_code_kernels();
  std::erase_if(ways, [](const CodeKernels* way) { return way->multiply_windows == nullptr; });
  return ways;
}

class EveryCodeWindow : public testing::TestWithParam<const CodeKernels*> {
 protected:
  const CodeKernels& table() const { return *GetParam(); }

  void expect_same(const Windows& w, bool are_nibbles) const {
    const std::int64_t k = w.lines * w.length(), rows = w.rows * w.pixels;
    const numerics::RowCodes numbers{
        .rows = w.n,
        .columns = k,
        .width = k,
        .numbers = random_numbers(w.n * k, are_nibbles ? -8 : -127, are_nibbles ? 7 : 127, 1),
        .scales = random_floats(w.n, 2),
        .zeros = {}};
    CodeWeight weight;
    weight.pack(table(), numbers, {k, 1, k, false, false, false}, false);
    ASSERT_EQ(weight.cut().has_nibbles, are_nibbles);
    const std::int64_t line = w.line_pixels() * w.channels, num_lines = w.rows + w.lines - 1;
    const std::vector<std::int8_t> x = random_numbers(num_lines * line, -128, 127, 3);
    const std::vector<float> scales = random_floats(rows, 4), bias = random_floats(w.n, 5),
                             residual = random_floats(rows * w.n, 6);
    std::vector<std::int8_t> gathered;
    std::vector<const std::int8_t*> places;
    std::vector<std::int32_t> sums;
    for (std::int64_t i = 0; i < w.rows; ++i) {
      places.push_back(x.data() + i * line);
      for (std::int64_t j = 0; j < w.pixels; ++j) {
        const std::size_t begin = gathered.size();
        for (std::int64_t p = 0; p < w.lines; ++p) {
          const std::int8_t* const from = x.data() + (i + p) * line + j * w.stride * w.channels;
          gathered.insert(gathered.end(), from, from + w.length());
        }
        std::int32_t sum = 0;
        for (std::size_t at = begin; at < gathered.size(); ++at) sum += gathered[at];
        sums.push_back(sum);
      }
    }
    const AlignedBuffer scratch(table().scratch_bytes(rows, weight.cut()));
    std::vector<float> expected(static_cast<std::size_t>(rows * w.n), -1.0f), y = expected;
    CodeArgs args{};
    args.rows = rows;
    args.n = w.n;
    args.x = gathered.data();
    args.x_stride = k;
    args.x_scales = scales.data();
    args.bias = bias.data();
    args.activation = Unary::Relu;
    args.residual = residual.data();
    args.residual_stride = w.n;
    args.y = expected.data();
    args.y_stride = w.n;
    args.scratch = scratch.data();
    weight.set_operands(args, 0);
    table().multiply(args);
    args.y = y.data();
    table().multiply_windows({.product = args,
                              .pixels = w.pixels,
                              .x = places.data(),
                              .x_step = w.stride * w.channels,
                              .lines = w.lines,
                              .line_step = line,
                              .length = w.length(),
                              .sums = sums.data()});
    EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0);
  }
};

TEST_P(EveryCodeWindow, HasTheBitsOfGatheredRows) {
  for (const Windows& windows : kWindows) {
    SCOPED_TRACE(testing::Message() << windows.lines << " x " << windows.columns << " of "
                                    << windows.channels << " channels, " << windows.pixels);
    expect_same(windows, false);
    if (windows.length() % (2 * kWindowStep) == 0) expect_same(windows, true);
  }
}

TEST_P(EveryCodeWindow, SumsPixels) {
  for (const std::int64_t channels : {4, 8, 60, 64, 132}) {
    const std::vector<std::int8_t> x = random_numbers(19 * channels, -128, 127, 1);
    std::vector<std::int32_t> expected, sums(19, -1);
    for (std::int64_t i = 0; i < 19; ++i) {
      expected.push_back(0);
      for (std::int64_t c = 0; c < channels; ++c)
        expected.back() += x[static_cast<std::size_t>(i * channels + c)];
    }
    table().sum_pixels(x.data(), 19, channels, sums.data());
    EXPECT_EQ(sums, expected) << channels;
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryCodeWindow, testing::ValuesIn(ways_with_windows()),
                         [](const auto& table) { return std::string(table.param->name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryCodeWindow);

}  // namespace
}  // namespace lathe::engine
