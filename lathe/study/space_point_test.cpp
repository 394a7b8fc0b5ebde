#include "lathe/study/space_point.h"

#include <gtest/gtest.h>

#include <set>

#include "lathe/study/math/keyed_random.h"
#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

// Kind 1 has a width of its own: 2 + 3 points with the unconditional switch doubling them.
Space tree() {
  return {{"kind", shared(CategoricalDistribution{{std::string("a"), std::string("b")}})},
          {"width", shared(IntDistribution{2, 6, false, 2}), "kind", {1}},
          {"bias", shared(CategoricalDistribution{{true, false}})}};
}

TEST(SpacePoint, KeepsWhatIsWantedAndDropsWhatHasNoPlace) {
  const Space space = tree();
  KeyedRandom random(1, 2, "test");
  const Assignment point = complete_point(
      space, {{"kind", space[0].distribution, 0}, {"width", space[1].distribution, 4}}, random);
  EXPECT_EQ(find_parameter(point, "kind")->value, 0);
  EXPECT_EQ(find_parameter(point, "width"), nullptr);
  EXPECT_NE(find_parameter(point, "bias"), nullptr);
}

TEST(SpacePoint, ReplacesAValueThatTheSpaceDoesNotHave) {
  const Space space = tree();
  KeyedRandom random(1, 2, "test");
  const Assignment point = complete_point(
      space, {{"kind", space[0].distribution, 1}, {"width", space[1].distribution, 5}}, random);
  EXPECT_TRUE(contains(*space[1].distribution, find_parameter(point, "width")->value));
}

TEST(SpacePoint, CountsAndListsThePointsOfATree) {
  const Space space = tree();
  ASSERT_EQ(num_points(space, 100), 8);
  EXPECT_EQ(num_points(space, 7), std::nullopt);
  std::set<std::uint64_t> keys;
  visit_points(space, [&](const Assignment& point) {
    keys.insert(point_key(point));
    return false;
  });
  EXPECT_EQ(keys.size(), 8u);
  EXPECT_EQ(num_points({{"x", shared(FloatDistribution{})}}, 100), std::nullopt);
}

TEST(SpacePoint, RemembersTrialsWhateverTheOrderOfTheirParameters) {
  const auto unit = shared(FloatDistribution{});
  History history({Direction::Minimize});
  add_finished(history, {{"x", unit, 0.25}, {"y", unit, 0.5}}, {1});
  SeenPoints seen;
  seen.update(history);
  EXPECT_TRUE(seen.contains({{"y", unit, 0.5}, {"x", unit, 0.25}}));
  EXPECT_FALSE(seen.contains({{"x", unit, 0.5}, {"y", unit, 0.25}}));
}

}  // namespace
}  // namespace lathe::study
