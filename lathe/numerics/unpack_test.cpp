#include "lathe/numerics/unpack.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::numerics {
namespace {

constexpr Isa kPaths[] = {Isa::Plain, Isa::Avx2, Isa::Avx512};

// Every number with every scale, NaN's included, in rows of `columns`.
EncodedMatrix every_number(const NumberFormat& format, std::int64_t columns) {
  EncodedMatrix encoded{.rows = 256, .columns = columns, .codes = {}, .scales = {}};
  for (std::int64_t row = 0; row < encoded.rows; ++row) {
    for (std::int64_t c = 0; c < columns; ++c)
      encoded.codes.push_back(static_cast<std::uint8_t>(row + 37 * c));
    for (std::int64_t b = 0; b < format.scale_bytes(columns); ++b)
      encoded.scales.push_back(static_cast<std::uint8_t>(row + b));
  }
  return encoded;
}

void expect_as_decoded(const NumberFormat& format, const EncodedMatrix& encoded, Isa isa,
                       ThreadPool* pool) {
  const auto count = static_cast<std::size_t>(encoded.rows * encoded.columns);
  std::vector<float> expected(count), floats(count);
  std::vector<std::uint16_t> bf16(count);
  format.decode(encoded, nullptr, nullptr, expected.data());
  const PackedRows rows{encoded.rows, encoded.columns, encoded.codes.data(), encoded.scales.data()};
  unpack(format, rows, floats.data(), pool, isa);
  unpack(format, rows, bf16.data(), pool, isa);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(expected[i]);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(floats[i]), bits) << name(isa) << ", number " << i;
    ASSERT_EQ(bits & 0xffff, 0u) << "bfloat16 would have to round number " << i;
    ASSERT_EQ(bf16[i], bits >> 16) << name(isa) << ", number " << i;
  }
}

TEST(Unpack, GivesTheBitsOfDecodeForEveryNumberAndScale) {
  for (const Isa isa : kPaths) {
    if (!is_supported(isa)) continue;
    for (const char* const text : {"mxint:8", "mxint:8,block=16", "mxint:8,block=128"})
      for (const std::int64_t columns : {128, 96, 67, 5}) {
        const auto format = parse_format(text);
        expect_as_decoded(*format, every_number(*format, columns), isa, nullptr);
      }
  }
}

TEST(Unpack, GivesTheSameBitsPastTheCachesAndByThreads) {
  const auto format = parse_format("mxint:8");
  EncodedMatrix encoded = every_number(*format, 1024);
  const EncodedMatrix once = encoded;
  while (encoded.rows * encoded.columns * 2 <= std::int64_t{16} << 20) {  // as should_stream says
    encoded.codes.insert(encoded.codes.end(), once.codes.begin(), once.codes.end());
    encoded.scales.insert(encoded.scales.end(), once.scales.begin(), once.scales.end());
    encoded.rows += once.rows;
  }
  ThreadPool pool(3);
  for (const Isa isa : kPaths)
    if (is_supported(isa)) expect_as_decoded(*format, encoded, isa, &pool);
}

TEST(Unpack, IsForSignedBytesInBlocksOfPowersOfTwo) {
  EXPECT_TRUE(can_unpack(*parse_format("mxint:8")));
  EXPECT_TRUE(can_unpack(*parse_format("bfp:8,block=16")));
  for (const char* const text : {"mxint:4", "int:8,channel", "mxfp:e4m3", "fixed:8,4", "ternary"})
    EXPECT_FALSE(can_unpack(*parse_format(text))) << text;
}

}  // namespace
}  // namespace lathe::numerics
