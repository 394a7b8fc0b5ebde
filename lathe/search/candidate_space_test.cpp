#include "lathe/search/candidate_space.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/search/space_file.h"
#include "lathe/study/storages/memory_storage.h"
#include "lathe/study/study.h"

namespace lathe::search {
namespace {

CandidateSpace space_of(const std::string& text, std::vector<std::string> layers = {}) {
  return CandidateSpace(parse_search_space(text, "s.toml"), std::move(layers));
}

// A point by the users' values.
study::Assignment point_of(const CandidateSpace& space,
                           const std::map<std::string, study::Choice>& values) {
  study::Assignment point;
  for (const study::SpaceParameter& each : space.parameters())
    if (const auto found = values.find(each.name); found != values.end())
      point.push_back({each.name, each.distribution,
                       study::to_internal(*each.distribution, found->second, each.name)});
  return point;
}

TEST(CandidateSpace, HasAParameterForWhatCanBeChosen) {
  const CandidateSpace space = space_of(R"(
[architecture]
layers = [1, 2]
hidden = 64
projections = ["linear", "identity"]
[recipe]
lr = [1e-3, 1e-4]
epochs = 2
)");
  std::vector<std::string> names;
  for (const study::SpaceParameter& each : space.parameters())
    names.push_back(each.name + (each.parent.empty() ? "" : " when " + each.parent));
  EXPECT_EQ(names, (std::vector<std::string>{
                       "layers", "pooler", "layer.0.query", "layer.0.key", "layer.0.value",
                       "layer.0.output", "layer.1.query when layers", "layer.1.key when layers",
                       "layer.1.value when layers", "layer.1.output when layers", "lr"}));
}

TEST(CandidateSpace, ChoosesTheSizesInAModelsName) {
  const CandidateSpace space = space_of(R"(
[architecture]
model = "vit:1x28x28,p7,w{width},l2,h{heads}"
width = [32, 48]
heads = [2, 3]
)");
  ASSERT_EQ(space.parameters().size(), 2U);
  const auto point = [&](std::int64_t width, std::int64_t heads) {
    return point_of(space, {{"width", width}, {"heads", heads}});
  };
  EXPECT_TRUE(space.is_possible(point(48, 3)));
  EXPECT_FALSE(space.is_possible(point(32, 3)));
  EXPECT_TRUE(space.is_possible(point_of(space, {{"heads", std::int64_t{3}}})));
  const Candidate candidate = space.candidate(point(48, 3));
  EXPECT_EQ(std::get<std::int64_t>(candidate.architecture.at("hidden_size")), 48);
  EXPECT_EQ(std::get<std::int64_t>(candidate.architecture.at("num_attention_heads")), 3);
}

TEST(CandidateSpace, SaysWhatAPointStandsFor) {
  const CandidateSpace space = space_of(R"(
[architecture]
layers = [1, 2]
hidden = 64
projections = ["linear", "identity"]
[recipe]
lr = [1e-3, 1e-4]
epochs = 2
)");
  EXPECT_FALSE(space.find_candidate(point_of(space, {{"lr", 1e-4}})));
  const Candidate candidate = space.candidate(point_of(space, {{"layers", std::int64_t{1}},
                                                               {"layer.0.key", "identity"},
                                                               {"pooler", "identity"},
                                                               {"layer.0.query", "linear"},
                                                               {"layer.0.value", "linear"},
                                                               {"layer.0.output", "linear"},
                                                               {"lr", 1e-4}}));
  EXPECT_EQ(to_json(candidate).dump(),
            R"({"architecture":{"hidden_size":64,"lathe_identity_projections":"0.key,pooler",)"
            R"("num_hidden_layers":1},"recipe":{"epochs":2,"lr":0.0001}})");
}

TEST(CandidateSpace, GivesEachLayerAFormat) {
  const CandidateSpace space = space_of(R"(
[precision.weights]
binary = "binary:scaled"
integer = {format = "int:{width},channel", width = [2, 4]}
[precision.data]
integer = {format = "int:{width},dynamic", width = [4, 8]}
)",
                                        {"a", "b"});
  const Candidate candidate =
      space.candidate(point_of(space, {{"a.weights", "integer"},
                                       {"a.weights.integer.width", std::int64_t{4}},
                                       {"b.weights", "binary"},
                                       {"a.data.integer.width", std::int64_t{8}},
                                       {"b.data.integer.width", std::int64_t{4}}}));
  EXPECT_EQ(to_json(candidate)["formats"].dump(),
            R"({"a":{"inputs":"int:8,dynamic","weights":"int:4,channel"},)"
            R"("b":{"inputs":"int:4,dynamic","weights":"binary:scaled"}})");
}

TEST(CandidateSpace, KnowsPointsThatCannotBe) {
  const CandidateSpace space = space_of("[architecture]\nheads = [2, 3]\nhidden = [48, 64]\n");
  const auto is_possible = [&](std::int64_t heads, std::int64_t hidden) {
    return space.is_possible(point_of(space, {{"heads", heads}, {"hidden", hidden}}));
  };
  EXPECT_TRUE(is_possible(2, 64));
  EXPECT_TRUE(is_possible(3, 48));
  EXPECT_FALSE(is_possible(3, 64));
  EXPECT_TRUE(space.is_possible(point_of(space, {{"heads", std::int64_t{3}}})));

  // A fraction of 12 bits does not fit into 8.
  const CandidateSpace formats = space_of(
      "[precision.families]\ni = {format = \"minifloat:{w},{e}\", w = [4, 8], e = [2, 6]}\n",
      {"a"});
  const auto exists = [&](std::int64_t width, std::int64_t exponent) {
    return formats.is_possible(point_of(formats, {{"a.i.w", width}, {"a.i.e", exponent}}));
  };
  EXPECT_TRUE(exists(8, 6));
  EXPECT_TRUE(exists(4, 2));
  EXPECT_FALSE(exists(4, 6));
}

// Formats to compare with have no part in points, and all layers have them.
TEST(CandidateSpace, HasFormatsBesideThatAllLayersHaveAlike) {
  const std::string text =
      "[precision.weights]\nbinary = \"binary\"\ninteger = \"int:4\"\n"
      "[precision.uniform]\nnf4 = \"nf4\"\nlog = {format = \"log:{w}\", w = [3, 4]}\n"
      "[precision.data]\ninteger = {format = \"int:{w}\", w = [4, 8]}\n[recipe]\nepochs = 2\n";
  const CandidateSpace space = space_of(text, {"a", "b"});
  std::vector<std::string> found;
  for (const Candidate& each : space.uniform_candidates()) {
    const compress::RoleFormats& formats = each.formats.at("a");
    EXPECT_EQ(each.formats.at("b"), formats);
    EXPECT_EQ(each.recipe.at("epochs"), 2);
    found.push_back(formats.at(compress::TensorRole::Weights) + " " +
                    formats.at(compress::TensorRole::Inputs));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"nf4 int:4", "nf4 int:8", "log:3 int:4", "log:3 int:8",
                                             "log:4 int:4", "log:4 int:8"}));
  EXPECT_EQ(space.uniform_points().size(), 4U);
  const CandidateSpace open = space_of(text + "lr = [1e-4, 1e-3]\n", {"a"});
  EXPECT_EQ(error_text([&] { open.uniform_candidates(); }),
            "precision: uniform: lr is left to choose: expected one value, which all that are "
            "compared have");
}

TEST(CandidateSpace, IsNeverLeftByASampler) {
  const CandidateSpace space =
      space_of("[architecture]\nheads = [2, 3, 5]\nhidden = [48, 64, 80]\n");
  for (const char* const sampler : {"auto", "grid", "random", "tpe"}) {
    SCOPED_TRACE(sampler);
    study::Study study = study::Study::create(
        std::make_shared<study::MemoryStorage>(), "s", {study::Direction::Maximize},
        {.sampler = sampler,
         .seed = 1,
         .space = space.parameters(),
         .is_allowed = [&](const study::Assignment& point) { return space.is_possible(point); }});
    for (int i = 0; i < 5; ++i) {
      std::optional<study::Trial> trial = study.ask();
      ASSERT_TRUE(trial);
      const Candidate candidate = space.candidate(trial->record().parameters);
      const auto hidden = std::get<std::int64_t>(candidate.architecture.at("hidden_size"));
      const auto heads = std::get<std::int64_t>(candidate.architecture.at("num_attention_heads"));
      EXPECT_EQ(hidden % heads, 0);
      EXPECT_TRUE(study.tell(*trial, {.values = {static_cast<double>(i)}}));
    }
  }
}

}  // namespace
}  // namespace lathe::search
