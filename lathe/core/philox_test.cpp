#include "lathe/core/philox.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

// The known answers published with the generator (Salmon et al., SC 2011).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~std::uint64_t{0}),
            (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0x299f31d0a4093822u),
            (PhiloxCounter{0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u}));
}

TEST(UnitInterval, NeverReachesItsEnds) {
  EXPECT_GT(unit_interval(0), 0.0);
  EXPECT_LT(unit_interval(~0u), 1.0);
}

}  // namespace
}  // namespace lathe
