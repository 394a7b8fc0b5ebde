#include "lathe/search/space_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/search/builder_sizes.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/model_choices.h"
#include "lathe/study/samplers/grid_points.h"

namespace lathe::search {
namespace {

std::string refusal(const std::string& text) {
  return error_text([&] { parse_search_space(text, "s.toml"); });
}

TEST(SpaceFile, ReadsArchitecturesAndRecipes) {
  const SearchSpace space = parse_search_space(R"(
[architecture]
model = "bert-mini"
layers = [2, 4]
hidden = 96
projections = ["linear", "identity"]
[recipe]
lr = {low = 1e-4, high = 1e-3, log = true}
batch-size = [16, 32]
epochs = 1
)",
                                               "s.toml");
  EXPECT_EQ(space.architecture.model, "bert-mini");
  EXPECT_EQ(space.architecture.layers, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(space.architecture.hidden, (std::vector<std::int64_t>{96}));
  EXPECT_EQ(study::describe(space.recipe.at("lr")),
            study::describe(study::FloatDistribution{.low = 1e-4, .high = 1e-3, .log = true}));
  EXPECT_EQ(study::num_values(space.recipe.at("batch-size")), 2);
  EXPECT_EQ(study::num_values(space.recipe.at("epochs")), 1);
}

TEST(SpaceFile, NamesLineAndNearestName) {
  EXPECT_EQ(refusal("[architecture]\nlayers = [2]\nhiden = [128]\n"),
            "s.toml:3: hiden: unknown key \"hiden\"; known: activation, heads, hidden, "
            "intermediate, layers, model, norm, projections\nhint: did you mean \"hidden\"?");
  EXPECT_EQ(refusal("[architecture]\nnorm = [\"post\", \"per\"]\n"),
            "s.toml:2: norm: architecture: unknown norm \"per\"; known: post, pre\n"
            "hint: did you mean \"pre\"?");
  const std::string format = refusal(
      "[precision.families]\nfloat = \"float\"\n"
      "integer = {format = \"fixd:{w},4\", w = [8]}\n");
  EXPECT_THAT(format,
              testing::StartsWith("s.toml:3: integer: unknown format family \"fixd\"; known: "));
  EXPECT_THAT(format, testing::EndsWith("hint: did you mean \"fixed\"?"));
  EXPECT_EQ(refusal("[recipe]\nlearning = 1\n").substr(0, 60),
            "s.toml:2: learning: recipe: unknown option of training \"lear");
  EXPECT_EQ(refusal("[architecture]\nlayers = []\n"), "s.toml:2: layers: the list is empty");
  EXPECT_EQ(refusal("[architecture]\nlayers = [2, \"4\"]\n"),
            "s.toml:2: layers: \"4\" is not a whole number");
  EXPECT_EQ(refusal("[precision.families]\na = {format = \"fixed:8,4\", w = [8]}\n"),
            "s.toml:2: a: the format fixed:8,4 has no place for {w}");
  EXPECT_EQ(refusal("[precision.families]\na = {format = \"fixed:{w},4\"}\n"),
            "s.toml:2: a: fixed:{w},4: \"w\" has no values");
}

TEST(SpaceFile, ReadsModelsOfAnyFamilyWithSizesInTheirNames) {
  const SearchSpace space = parse_search_space(
      "[architecture]\nheads = [2, 3, 5]\nmodel = \"vit:1x28x28,p7,w{width},l1,h{heads}\"\n"
      "width = [32, 48]\n",
      "s.toml");
  EXPECT_TRUE(space.architecture.heads.empty());
  // Those whose heads do not divide the width cannot be built.
  EXPECT_EQ(models_of(space.architecture),
            (std::vector<std::string>{"vit:1x28x28,p7,w32,l1,h2", "vit:1x28x28,p7,w48,l1,h2",
                                      "vit:1x28x28,p7,w48,l1,h3"}));
  EXPECT_EQ(refusal("[architecture]\nmodel = \"mlp:4,{wide},2\"\nwde = [8]\n"),
            "s.toml:3: wde: unknown key \"wde\"; known: wide\nhint: did you mean \"wide\"?");
  EXPECT_EQ(refusal("[architecture]\nmodel = \"mlp:4,{wide},2\"\n"),
            "s.toml:1: mlp:4,{wide},2: \"wide\" has no values");
  EXPECT_EQ(refusal("[architecture]\nmodel = \"resnet20\"\nlayers = [2, 4]\n"),
            "s.toml:1: architecture: layers: is chosen by models of the family bert alone: "
            "expected a place for it in resnet20");
  EXPECT_EQ(refusal("[architecture]\nmodel = \"{kind}4,2\"\nkind = [\"mlp:\", \"cnn:1x4x4,\"]\n"),
            "s.toml:1: mlp:4,2 is of the family mlp, cnn:1x4x4,4,2 of cnn: expected one family");
}

TEST(BuilderName, IsTheFirstThatCanBeBuiltAndLooksAtNoOther) {
  const ArchitectureSpace heads{.model = "vit:1x28x28,p7,w32,l1,h{heads}",
                                .variables = {{"heads", {std::int64_t{3}, std::int64_t{2}}}}};
  EXPECT_EQ(builder_name(heads), "vit:1x28x28,p7,w32,l1,h2");
  const ArchitectureSpace kinds{
      .model = "{kind}4,2",
      .variables = {{"kind", {std::string("mlp:"), std::string("cnn:1x4x4,")}}}};
  EXPECT_EQ(builder_name(kinds), "mlp:4,2");
}

TEST(SpaceFile, ReadsFormatsToCompareWith) {
  const SearchSpace space = parse_search_space(
      "[precision.uniform]\na = {format = \"int:{w}\", w = [2, 3]}\n"
      "[precision.weights]\nb = \"binary\"\n",
      "s.toml");
  ASSERT_EQ(space.precision->uniform.size(), 1U);
  EXPECT_EQ(space.precision->uniform[0].formats, (std::vector<std::string>{"int:2", "int:3"}));
  EXPECT_EQ(space.precision->tensors.size(), 1U);
  EXPECT_EQ(refusal("[precision.data]\na = \"int:8\"\n[precision.uniform]\nb = \"int:4\"\n"),
            "s.toml:3: uniform: its formats are of weights, which choose none: expected a table "
            "weights or families beside");
}

TEST(SpaceFile, RefusesConditionsOfARecipe) {
  EXPECT_EQ(refusal("[recipe]\nlr = {low = 1e-4, high = 1e-3, when = {layers = 1}}\n"),
            "s.toml:2: lr: when: a recipe has no conditions, all points have it");
}

TEST(SpaceFile, RefusesListsOfWhatIsNotChosen) {
  EXPECT_EQ(refusal("[architecture]\nmodel = [\"bert-tiny\", \"bert-mini\"]\nlayers = [1, 2]\n"),
            "s.toml:2: model: 2 values: expected one, which is not chosen");
  EXPECT_EQ(refusal("[precision.weights]\na = {format = [\"int:8\", \"int:4\"]}\n"),
            "s.toml:2: a: format: 2 values: expected one, which is not chosen");
  EXPECT_EQ(refusal("[pruning]\nsparsity = [0, 0.5]\nlayers = [\"encoder\", \"pooler\"]\n"),
            "s.toml:3: layers: 2 values: expected one, which is not chosen");
}

TEST(SpaceFile, RefusesSpacesWithoutPoints) {
  EXPECT_EQ(
      refusal(""),
      "s.toml: the space is empty: expected a table [architecture], [precision], [pruning] or "
      "[recipe]");
  EXPECT_EQ(refusal("[architecture]\nheads = [3, 5]\nhidden = [128]\n"),
            "s.toml:1: architecture: no point is possible: none of heads 3, 5 divides any of "
            "hidden 128");
}

TEST(SpaceFile, ShipsTheSpacesOfTheLabs) {
  for (const std::string& name : shipped_spaces()) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(CandidateSpace(read_search_space(name), {"layer"}).parameters().empty());
  }
  // 3 x 4 x 5 x 5 sizes; of two layers nine projections, of four 17, of eight 33.
  const CandidateSpace lab2(read_search_space("lab2"));
  const std::uint64_t sizes = 4 * 5 * 5;
  EXPECT_EQ(study::GridPoints(lab2.parameters(), 0).size(),
            sizes * ((1ULL << 9) + (1ULL << 17) + (1ULL << 33)));
}

}  // namespace
}  // namespace lathe::search
