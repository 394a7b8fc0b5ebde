// Kernels where they could go their own ways: logarithms next to whole and half numbers, tiles of
// all shapes in long rows, blocks of zeros.
#include "lathe/numerics/kernels/kernels.h"

#include <gtest/gtest.h>

#include <random>

#include "lathe/core/number_format.h"
#include "lathe/numerics/testing/matrix.h"

namespace lathe::numerics {
namespace {

void expect_definition_on_every_path(const std::string& text, const Matrix& matrix) {
  const auto format = parse_format(text);
  const std::vector<float> expected = recoded(*format, matrix);
  for (const Isa isa : supported_isas()) {
    const std::vector<float> y = quantized(*format, matrix, isa);
    int shown = 0;
    for (std::size_t i = 0; i < y.size() && shown < 3; ++i) {
      const float x = matrix.values[i];
      if (std::isnan(x) ? std::isnan(y[i]) : is_same(y[i], expected[i])) continue;
      ADD_FAILURE() << text << " on " << name(isa) << ", " << matrix.rows << "x" << matrix.columns
                    << ": element " << i << ", " << x << " (" << std::hex << bits_of(x)
                    << "): " << y[i] << " instead of " << expected[i];
      ++shown;
    }
  }
}

// For every exponent, subnormal ones included, the floats next to the power of two and next to the
// power of two times the square root of 2.
Matrix floats_beside_whole_and_half_logarithms() {
  Matrix matrix{0, 512};
  const auto add_beside = [&](std::uint32_t bits, int distance) {
    for (int step = -distance; step < distance; ++step) {
      const float value = float_of(bits + static_cast<std::uint32_t>(step));
      if (!(value >= 0)) continue;
      matrix.values.push_back(value);
      if (step % 4 == 0) matrix.values.push_back(-value);
    }
  };
  for (std::uint32_t field = 1; field < 255; ++field) {
    add_beside(field << 23, 100);
    add_beside(field << 23 | 3474675, 80);
  }
  add_beside(kInfinityBits, 100);
  for (std::uint32_t bits = 1; bits < 1 << 23; bits *= 2) {
    add_beside(bits, 30);
    add_beside(static_cast<std::uint32_t>(bits * 1.41421356), 3);
  }
  while (matrix.values.size() % 512 != 0) matrix.values.push_back(0);
  matrix.rows = std::ssize(matrix.values) / 512;
  return matrix;
}

TEST(MaseKernels, RoundLogarithmsAsTheirDefinitionsAtEveryExponent) {
  const Matrix matrix = floats_beside_whole_and_half_logarithms();
  for (const char* text : {"mase.log:8,bias=63",
                           "mase.log:8,bias=126",
                           "mase.log:8,bias=0",
                           "mase.log:4,bias=-90",
                           "mase.minifloat_denorm:8,4,bias=7",
                           "mase.minifloat_denorm:12,7,bias=63",
                           "mase.minifloat_denorm:24,7,bias=20",
                           "mase.minifloat_denorm:16,8",
                           "mase.minifloat_denorm:12,7,bias=126",
                           "mase.minifloat_denorm:3,1",
                           "mase.minifloat_ieee:8,4,bias=7",
                           "mase.minifloat_ieee:12,7,bias=63",
                           "mase.minifloat_ieee:24,7,bias=20",
                           "mase.minifloat_ieee:24,1",
                           "mase.minifloat_ieee:16,8",
                           "mase.minifloat_ieee:12,7,bias=126",
                           "mase.minifloat_ieee:12,7,bias=0",
                           "mase.minifloat_ieee:3,1",
                           "mase.integer:24,96",
                           "mase.integer_floor:32,-64"})
    expect_definition_on_every_path(text, matrix);
}

TEST(MaseKernels, RoundLogarithmsOfMaximaAsTheirDefinitionsAtEveryExponent) {
  const Matrix matrix = floats_beside_whole_and_half_logarithms();
  for (const char* text : {"mase.block_fp:8,8,block=1x1",
                           "mase.block_fp:8,8,block=1x8",
                           "mase.block_fp:24,8",
                           "mase.block_fp:2,5",
                           "mase.block_fp:8,1,bias=127",
                           "mase.block_fp:24,2,bias=120",
                           "mase.block_minifloat:8,4,block=1x1",
                           "mase.block_minifloat:8,4,block=1x8",
                           "mase.block_minifloat:9,7",
                           "mase.block_minifloat:16,1",
                           "mase.block_minifloat:3,1,bias_width=3",
                           "mase.block_log:8,block=1x1",
                           "mase.block_log:8,block=1x8",
                           "mase.block_log:8",
                           "mase.block_log:7,block=2x8",
                           "mase.block_log:5,block=2x3",
                           "mase.block_log:2",
                           "mase.block_log:6,bias_width=3",
                           "mase.mxint:8,block=1",
                           "mase.mxint:8,block=8",
                           "mase.mxint:2,block=16"})
    expect_definition_on_every_path(text, matrix);
}

// Blocks of 16 for every exponent a maximum can have: numbers with few bits, many of them halfway
// between two others, in the maximum's binade and the 24 below it, beside numbers around 1e-9.
Matrix blocks_of_many_binades() {
  Matrix matrix{0, 512};
  std::mt19937 random(11);
  const auto number = [&](int exponent, int bits) {
    const auto mantissa = static_cast<float>(random() % (1u << bits));
    const float value = std::ldexp(1 + std::ldexp(mantissa, -bits), exponent);
    return random() % 2 == 0 ? value : -value;
  };
  for (int exponent = -149; exponent < 128; ++exponent)
    for (int i = 0; i < 8 * 16; ++i)
      matrix.values.push_back(i % 16 == 5    ? number(exponent, 6)
                              : i % 16 == 12 ? number(-35 + static_cast<int>(random() % 22), 23)
                                             : number(exponent - static_cast<int>(random() % 25),
                                                      1 + static_cast<int>(random() % 18)));
  while (matrix.values.size() % 512 != 0) matrix.values.push_back(0);
  matrix.rows = std::ssize(matrix.values) / 512;
  return matrix;
}

TEST(MaseKernels, RoundBlocksOfManyBinadesAsTheirDefinitions) {
  const Matrix matrix = blocks_of_many_binades();
  for (const char* text :
       {"mase.block_minifloat:8,4", "mase.block_minifloat:16,1", "mase.block_minifloat:16,2",
        "mase.block_minifloat:16,4,block=1x32", "mase.block_minifloat:16,5,bias_width=4",
        "mase.block_minifloat:3,1", "mase.block_minifloat:8,6", "mase.block_log:8",
        "mase.block_log:7", "mase.block_log:5", "mase.block_log:3,block=1x32", "mase.block_log:2",
        "mase.block_log:8,bias_width=7", "mase.block_log:4,bias_width=2"})
    expect_definition_on_every_path(text, matrix);
}

TEST(TileKernels, RoundTilesOfAllShapesAsTheyEncode) {
  const std::int64_t columns[] = {1100, 1024};
  for (const std::int64_t count : columns)
    for (const char* tile : {"2x4", "2x8", "4x16", "3x24", "2x32", "5x64", "2x128", "9x3"})
      for (const char* family : {"bfp:8", "block_minifloat:8,3", "mase.block_fp:8,8",
                                 "mase.block_minifloat:8,4", "mase.block_log:8"}) {
        const std::string text = fmt::format("{},block={}", family, tile);
        expect_definition_on_every_path(text, random_matrix(9, count, 1));
        expect_definition_on_every_path(text, wild_matrix(8, count, true, 2));
      }
}

TEST(MaseKernels, GiveBlocksOfZerosTheSmallestMaximumBesideThem) {
  Matrix matrix{3, 640, std::vector<float>(3 * 640)};
  for (std::size_t i = 0; i < 640; i += 64) matrix.values[i] = std::ldexp(1.0f, -int(i / 16));
  matrix.values[640 + 600] = 0x1p-140f;  // the third row is all zeros
  for (const char* text : {"mase.block_log:8", "mase.block_log:5,block=2x16",
                           "mase.block_log:8,block=8", "mase.block_log:4,block=32"}) {
    expect_definition_on_every_path(text, matrix);
    const auto format = parse_format(text);
    Matrix in_place = matrix;
    format->quantize(arguments(in_place, {}, in_place.values.data(), best_isa()));
    EXPECT_TRUE(are_same(in_place.values.data(), recoded(*format, matrix).data(), 3 * 640)) << text;
  }
}

TEST(TileKernels, StreamTilesUnchanged) {
  const Matrix matrix = random_matrix(4100, 1040, 3);
  for (const char* text : {"bfp:8,block=4x16", "block_minifloat:8,3,block=2x8"}) {
    const auto format = parse_format(text);
    std::vector<float> y(matrix.values.size() + 1);
    for (const std::int64_t offset : {0, 1})
      for (const Isa isa : supported_isas()) {
        format->quantize(arguments(matrix, {}, y.data() + offset, isa));
        const Matrix last{4, 1040, {matrix.values.end() - 4 * 1040, matrix.values.end()}};
        EXPECT_TRUE(
            are_same(y.data() + offset + 4096 * 1040, recoded(*format, last).data(), 4 * 1040))
            << text << " on " << name(isa) << " at " << offset;
      }
  }
}

TEST(DecodeBytes, MultipliesNumbersByTheirBlocksScalesOnEveryPath) {
  std::vector<std::int8_t> numbers(300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int8_t>(i * 37);
  for (const std::int64_t columns : {1, 31, 64, 300})
    for (const std::int64_t block : {16, 32, 300})
      for (const bool streams : {false, true})
        for (const Isa isa : supported_isas()) {
          std::vector<float> scales;
          for (std::int64_t c = 0; c < columns; c += block)
            scales.push_back(0.1f * static_cast<float>(c + 1));
          std::vector<float> y(static_cast<std::size_t>(columns), -1.0f);
          kernels(isa).decode_bytes({.numbers = numbers.data(),
                                     .scales = scales.data(),
                                     .columns = columns,
                                     .block = block,
                                     .y = y.data(),
                                     .streams = streams});
          for (std::size_t i = 0; i < y.size(); ++i)
            ASSERT_EQ(y[i],
                      static_cast<float>(numbers[i]) * scales[i / static_cast<std::size_t>(block)])
                << name(isa) << ", " << columns << " columns in blocks of " << block;
        }
}

}  // namespace
}  // namespace lathe::numerics
