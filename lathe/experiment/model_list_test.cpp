#include "lathe/experiment/model_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::experiment {
namespace {

using testing::ElementsAre;

TEST(ModelList, SplitsAtCommasUnlessTheWholeIsOneModel) {
  EXPECT_THAT(model_list("a"), ElementsAre("a"));
  EXPECT_THAT(model_list("a,b/c,d"), ElementsAre("a", "b/c", "d"));
  EXPECT_THAT(model_list("mlp:4,8"), ElementsAre("mlp:4,8"));
  const io::ScratchDirectory scratch;
  std::filesystem::create_directory(scratch / "a,b");
  EXPECT_THAT(model_list((scratch / "a,b").string()), ElementsAre((scratch / "a,b").string()));
  EXPECT_EQ(error_text([] { model_list("a,,b"); }),
            "\"a,,b\": expected models separated by single commas");
}

}  // namespace
}  // namespace lathe::experiment
