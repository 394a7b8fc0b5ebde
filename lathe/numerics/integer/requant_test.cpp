#include "lathe/numerics/integer/requant.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::numerics {
namespace {

TEST(Requant, AgreesWithTheRealQuotientOnEveryIntegerOf12Bits) {
  // Quotients by 2^5 are doubles, so floor and nearbyint of them are exact.
  for (std::int64_t x = -2048; x < 2048; ++x) {
    const double real = std::ldexp(static_cast<double>(x), -5);
    EXPECT_EQ(shift_rounded(x, 5, IntegerRounding::NearestEven), std::nearbyint(real)) << x;
    EXPECT_EQ(shift_rounded(x, 5, IntegerRounding::Floor), std::floor(real)) << x;
    EXPECT_EQ(shift_rounded(x, 5, IntegerRounding::HalfUp), std::floor(real + 0.5)) << x;
  }
}

TEST(Requant, SaturatesAtTheEndsOfItsRange) {
  const auto to = [](Integer128 x, IntegerRange range) {
    return requant(x, 1, 0, IntegerRounding::NearestEven, range);
  };
  EXPECT_EQ(to(-129, {.width = 8}), -128);
  EXPECT_EQ(to(128, {.width = 8}), 127);
  EXPECT_EQ(to(-129, {.width = 8, .is_symmetric = true}), -127);
  EXPECT_EQ(to(-1, {.width = 8, .is_signed = false}), 0);
  EXPECT_EQ(to(256, {.width = 8, .is_signed = false}), 255);
  EXPECT_EQ(to(Integer128{1} << 70, {.width = 64}), INT64_MAX);
  EXPECT_EQ(to(-(Integer128{1} << 70), {.width = 64}), INT64_MIN);
}

TEST(Requant, MultipliesExactlyBeforeItRounds) {
  // 3 * 21845 / 2^16 = 0.99998..., 3 * 21846 / 2^16 = 1.00003...: both are nearest to 1.
  EXPECT_EQ(requant(3, 21845, 16, IntegerRounding::NearestEven, {}), 1);
  EXPECT_EQ(requant(3, 21845, 16, IntegerRounding::Floor, {}), 0);
  EXPECT_EQ(requant(3, 21846, 16, IntegerRounding::Floor, {}), 1);
  EXPECT_EQ(requant(INT64_MAX, INT32_MAX, 80, IntegerRounding::Floor, {.width = 32}), 16383);
}

TEST(Requant, MovesToTheLeftByANegativeShift) {
  EXPECT_EQ(requant(-3, 1, -4, IntegerRounding::NearestEven, {}), -48);
}

TEST(Requant, DropsEverythingByAnyLargeShift) {
  for (const int shift : {64, 126, 1000}) {
    EXPECT_EQ(requant(-1, 1, shift, IntegerRounding::NearestEven, {}), 0);
    EXPECT_EQ(requant(-1, 1, shift, IntegerRounding::Floor, {}), -1);
  }
}

TEST(SignedBits, CountsTheSign) {
  EXPECT_EQ(signed_bits(-128, 127), 8);
  EXPECT_EQ(signed_bits(-129, 0), 9);
  EXPECT_EQ(signed_bits(0, 128), 9);
  EXPECT_EQ(signed_bits(INT64_MIN, INT64_MAX), 64);
}

}  // namespace
}  // namespace lathe::numerics
