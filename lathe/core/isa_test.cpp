#include "lathe/core/isa.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(Isa, IsReadBackFromItsName) {
  EXPECT_EQ(parse_isa("plain"), Isa::Plain);
  EXPECT_EQ(parse_isa("avx2"), Isa::Avx2);
  EXPECT_EQ(parse_isa("avx512"), Isa::Avx512);
  EXPECT_EQ(parse_isa("avx"), std::nullopt);
  EXPECT_EQ(name(Isa::Avx2), "avx2");
}

TEST(Isa, PlainIsSupportedEverywhereAndTheBestOneHere) {
  EXPECT_TRUE(is_supported(Isa::Plain));
  EXPECT_TRUE(is_supported(best_isa()));
}

}  // namespace
}  // namespace lathe
