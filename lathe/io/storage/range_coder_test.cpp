#include "lathe/io/storage/range_coder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lathe::io {
namespace {

struct Decision {
  bool bit;
  std::uint32_t one;
};

std::vector<std::uint8_t> encode(const std::vector<Decision>& decisions) {
  RangeEncoder encoder;
  for (const Decision& decision : decisions) encoder.put(decision.bit, decision.one);
  return encoder.finish();
}

void expect_decoded(const std::vector<Decision>& decisions) {
  const std::vector<std::uint8_t> bytes = encode(decisions);
  RangeDecoder decoder(bytes);
  for (std::size_t i = 0; i < decisions.size(); ++i)
    ASSERT_EQ(decoder.take(decisions[i].one), decisions[i].bit) << i;
  EXPECT_TRUE(decoder.is_at_end());
}

TEST(RangeCoder, GivesBackTheBitsItWasGiven) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Decision> decisions;
    for (int i = 0; i < round * 5; ++i) {
      const std::uint32_t one = 1 + random() % 65535;
      decisions.push_back({random() % 65536 < one, one});
    }
    expect_decoded(decisions);
  }
}

// What is least likely leaves the smallest ranges, and sums that carry far.
TEST(RangeCoder, GivesBackBitsThatNobodyExpected) {
  for (const std::uint32_t one : {1u, 65535u})
    for (const bool bit : {false, true})
      expect_decoded(std::vector<Decision>(1000, Decision{bit, one}));
}

TEST(RangeCoder, TakesAsManyBitsAsTheProbabilitiesSay) {
  std::mt19937 random(2);
  std::vector<Decision> decisions;
  double bits = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::uint32_t one = 1 + random() % 65535;
    decisions.push_back({random() % 65536 < one, one});
    const double share = decisions.back().bit ? one : 65536 - one;
    bits -= std::log2(share / 65536);
  }
  // The range is at least 2^32 of which a 2^16th is cut off, so a bit costs less than 2^-15 more;
  // and the last bits fill a byte.
  EXPECT_LE(8.0 * static_cast<double>(encode(decisions).size()), bits + 100000 / 32768.0 + 8);
}

TEST(RangeCoder, WritesTheSameBytesEverywhere) {
  std::vector<Decision> decisions;
  for (std::uint32_t i = 0; i < 64; ++i) decisions.push_back({i * i % 7 < 3, 1 + i * 1021 % 65535});
  EXPECT_EQ(encode(decisions),
            (std::vector<std::uint8_t>{0, 0, 0, 32, 21, 183, 53, 44, 199, 29, 162, 27, 104}));
}

TEST(RangeCoder, SaysWhetherBytesAreLeft) {
  std::vector<std::uint8_t> bytes = encode({{true, 32768}, {false, 32768}});
  bytes.resize(bytes.size() + 12, 1);
  RangeDecoder decoder(bytes);
  decoder.take(32768);
  decoder.take(32768);
  EXPECT_FALSE(decoder.is_at_end());
}

}  // namespace
}  // namespace lathe::io
