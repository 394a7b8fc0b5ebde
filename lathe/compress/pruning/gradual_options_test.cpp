#include "lathe/compress/pruning/gradual_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

using testing::HasSubstr;

std::vector<std::pair<std::int64_t, double>> prunings(const std::string& text,
                                                      std::int64_t num_steps) {
  std::vector<std::pair<std::int64_t, double>> result;
  for (std::int64_t done = 0; done < num_steps; ++done)
    if (const auto share = gradual_share(parse_gradual_options(text), done, num_steps))
      result.emplace_back(done, *share);
  return result;
}

TEST(GradualShare, FollowsACubicToOne) {
  const auto found = prunings("sparsity=0.9,begin=0.2,end=0.6,every=10", 100);
  ASSERT_EQ(found.size(), 4u);
  // x is 1/4, 1/2, 3/4 and 1 at the steps 30, 40, 50 and 60.
  const double expected[] = {37.0 / 64, 56.0 / 64, 63.0 / 64, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i].first, 30 + 10 * static_cast<std::int64_t>(i));
    EXPECT_NEAR(found[i].second, expected[i], 1e-12);
  }
}

TEST(GradualShare, IsOneOnceHoweverShortTheRun) {
  for (const std::string text : {"sparsity=0.5", "sparsity=0.5,begin=1,end=1",
                                 "sparsity=0.5,begin=0,end=0", "sparsity=0.5,every=7"})
    for (std::int64_t num_steps = 1; num_steps < 200; ++num_steps) {
      const auto found = prunings(text, num_steps);
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(found.back().second, 1.0);
      for (std::size_t i = 1; i < found.size(); ++i)
        EXPECT_LT(found[i - 1].second, found[i].second) << text << " " << num_steps;
      const GradualOptions options = parse_gradual_options(text);
      for (std::int64_t done = 0; done <= num_steps; ++done)
        EXPECT_EQ(is_fully_pruned(options, done, num_steps), done > found.back().first);
    }
}

TEST(GradualOptions, AreReadFromText) {
  const GradualOptions options =
      parse_gradual_options("sparsity=0.75,method=movement,scope=local,granularity=4x4,embeddings");
  EXPECT_EQ(options.settings.sparsity, 0.75);
  EXPECT_EQ(options.settings.method, "movement");
  EXPECT_EQ(options.settings.scope, PruningScope::Local);
  EXPECT_EQ(options.settings.granularity, parse_granularity("4x4"));
  EXPECT_TRUE(options.embeddings);
  EXPECT_EQ(parse_gradual_options("sparsity=0.5").settings.scope, PruningScope::Global);
  EXPECT_EQ(parse_gradual_options("sparsity=0.5,method=l1").settings.scope, PruningScope::Global);
  // Some layers would be gone as a whole.
  EXPECT_EQ(parse_gradual_options("sparsity=0.5,method=movement").settings.scope,
            PruningScope::Local);
  EXPECT_EQ(parse_gradual_options("method=movement,scope=global").settings.scope,
            PruningScope::Global);
}

TEST(GradualOptions, AreRefusedWithWhatWasExpected) {
  const auto error = [](const std::string& text) {
    return error_text([&] { parse_gradual_options(text); });
  };
  EXPECT_THAT(error("sparsty=0.5"), HasSubstr("sparsity"));
  EXPECT_THAT(error("sparsity"), HasSubstr("sparsity="));
  EXPECT_THAT(error("sparsity=a"), HasSubstr("sparsity=\"a\": expected a number"));
  EXPECT_THAT(error("sparsity=1.5"), HasSubstr("1.5"));
  EXPECT_THAT(error("sparsity=0.5,method=l7"), HasSubstr("l1"));
  EXPECT_THAT(error("sparsity=0.5,begin=0.7,end=0.2"), HasSubstr("begin=0.7, end=0.2"));
  EXPECT_THAT(error("sparsity=0.5,every=0"), HasSubstr("every=0"));
  EXPECT_THAT(error("sparsity=0.5,every=1.5"), HasSubstr("every=1.5"));
}

}  // namespace
}  // namespace lathe::compress
