#include "lathe/experiment/pipeline/pipeline_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::experiment {
namespace {

using testing::HasSubstr;

TEST(Pipeline, IsReadInOrder) {
  const std::vector<StageSpec> stages = parse_pipeline(
      "[[stage]]\nkind = \"prune\"\nsparsity = 0.5\n\n"
      "[[stage]]\nkind = \"fine-tune\"\nepochs = 2\nlr = 1e-4\n\n"
      "[[stage]]\nkind = \"quantize\"\n[stage.by-name]\nclassifier = \"int:8\"\n",
      "p.toml");
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].kind, "prune");
  EXPECT_EQ(stages[1].settings, (nlohmann::json{{"epochs", 2}, {"lr", 1e-4}}));
  EXPECT_EQ(stages[2].settings["by-name"]["classifier"], "int:8");
  EXPECT_EQ(stages[1].place, "p.toml:5");
}

TEST(Pipeline, NamesTheLineOfWhatIsWrong) {
  const auto error = [](const std::string& stage) {
    return error_text([&] { parse_pipeline("\n[[stage]]\n" + stage + "\n", "p.toml"); });
  };
  EXPECT_THAT(error("sparsity = 1"), HasSubstr("p.toml:2: a stage needs kind"));
  EXPECT_THAT(error("kind = \"prun\""), HasSubstr("did you mean \"prune\"?"));
  EXPECT_THAT(error("kind = \"prune\"\nsparsty = 0.5"), HasSubstr("sparsity"));
  EXPECT_THAT(error("kind = \"prune\"\nsparsity = 1.5"), HasSubstr("1.5"));
  EXPECT_THAT(error("kind = \"fine-tune\"\nepochs = \"two\""),
              HasSubstr("not a value of its kind"));
  EXPECT_THAT(error("kind = \"fine-tune\"\nmodel = \"m\""), HasSubstr("model: is not a stage"));
  EXPECT_THAT(error("kind = \"quantize\"\nweights = \"in:8\""),
              HasSubstr("weights: unknown format family \"in\""));
  EXPECT_THAT(error("kind = \"fuse-lora\"\nrank = 8"), HasSubstr("has no settings"));
  EXPECT_THAT(error("kind ="), HasSubstr("p.toml:3"));
}

}  // namespace
}  // namespace lathe::experiment
