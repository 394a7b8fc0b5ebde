#include "lathe/numerics/integer/rounded_divide.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::numerics {
namespace {

TEST(RoundedDivide, AgreesWithTheRealQuotientOnSmallIntegers) {
  // A quotient of such integers is either a tie, and then a double, or 1/128 away from one.
  for (std::int64_t numerator = -1000; numerator <= 1000; ++numerator)
    for (std::int64_t denominator = 1; denominator <= 64; ++denominator)
      EXPECT_EQ(rounded_divide(numerator, denominator),
                std::nearbyint(static_cast<double>(numerator) / static_cast<double>(denominator)))
          << numerator << " / " << denominator;
}

}  // namespace
}  // namespace lathe::numerics
