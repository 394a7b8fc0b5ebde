#include "lathe/train/augmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lathe/core/error.h"
#include "lathe/io/testing/refusal.h"

namespace lathe::train {
namespace {

using io::refusal;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;

std::vector<float> seen(const Augmentation& augmentation, std::int64_t example, std::int64_t epoch,
                        std::uint64_t seed = 1) {
  const std::vector<float> image = {1, 2, 3, 4, 5, 6}, background = {-1};
  const std::vector<std::int64_t> shape = {1, 2, 3};
  std::vector<float> result(6);
  augment(image, shape, background, augmentation, seed, example, epoch, result);
  return result;
}

TEST(Augmentation, IsReadFromText) {
  EXPECT_EQ(parse_augmentation("flip,shift=4"), (Augmentation{.flips = true, .shift = 4}));
  EXPECT_EQ(parse_augmentation(""), Augmentation());
  EXPECT_EQ(refusal("", [] { parse_augmentation("shift=0"); }),
            "shift=0: expected 1 to 1024 pixels");
  EXPECT_EQ(refusal("", [] { parse_augmentation("turn"); }),
            "unknown augmentation \"turn\"; known: flip, shift=N");
}

TEST(Augmentation, LeavesImagesAloneWhereNothingIsAskedFor) {
  EXPECT_THAT(seen({}, 3, 4), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Augmentation, FlipsHalfOfTheImages) {
  int flipped = 0;
  for (std::int64_t example = 0; example < 1000; ++example) {
    const std::vector<float> image = seen({.flips = true}, example, 0);
    EXPECT_THAT(image, AnyOf(ElementsAre(1, 2, 3, 4, 5, 6), ElementsAre(3, 2, 1, 6, 5, 4)));
    if (image[0] == 3) ++flipped;
  }
  // Within four deviations of a half, which a fair coin misses once in 16,000 seeds.
  EXPECT_NEAR(flipped, 500, 4 * 15.8);
}

TEST(Augmentation, MovesImagesEveryWay) {
  std::set<std::vector<float>> all;
  for (std::int64_t example = 0; example < 200; ++example)
    all.insert(seen({.shift = 1}, example, 0));
  EXPECT_EQ(all.size(), 9u);
  EXPECT_THAT(all, Contains(ElementsAre(1, 2, 3, 4, 5, 6)));
  EXPECT_THAT(all, Contains(ElementsAre(-1, -1, -1, -1, 1, 2)));
  EXPECT_THAT(all, Contains(ElementsAre(5, 6, -1, -1, -1, -1)));
}

TEST(Augmentation, DependsOnSeedExampleAndEpochAlone) {
  const Augmentation both{.flips = true, .shift = 2};
  const auto differs = [&](std::int64_t example, std::int64_t epoch, std::uint64_t seed) {
    for (std::int64_t i = 0; i < 20; ++i)
      if (seen(both, i, 0, 1) != seen(both, i + example, epoch, seed)) return true;
    return false;
  };
  EXPECT_FALSE(differs(0, 0, 1));
  EXPECT_TRUE(differs(20, 0, 1));
  EXPECT_TRUE(differs(0, 1, 1));
  EXPECT_TRUE(differs(0, 0, 2));
}

}  // namespace
}  // namespace lathe::train
