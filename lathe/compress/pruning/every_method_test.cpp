// Every registered method with every granularity that it knows.

#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/compress/pruning/prune_model.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/text_source.h"

namespace lathe::compress {
namespace {

struct Case {
  std::string method, granularity;
};

std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const auto& [name, method] : PruningMethodRegistry::instance().all())
    for (const char* const text :
         {"element", "2:4", "1x4", "row", "column", "head", "neuron", "vocabulary"}) {
      const Granularity granularity = parse_granularity(text);
      // A table has no inputs to measure, and training is not had in one shot.
      const bool has_evidence = method.evidence != PruningEvidence::Training &&
                                (method.evidence != PruningEvidence::Inputs ||
                                 granularity.kind != Granularity::Kind::Vocabulary);
      if (has_evidence && (!method.granularities || method.granularities(granularity)))
        cases.push_back({name, text});
    }
  return cases;
}

class EveryMethod : public testing::TestWithParam<Case> {
 protected:
  EveryMethod() : plain_(io::load_model(io::write_tiny_bert(scratch_, "m"))) {}

  struct Outcome {
    State masks;
    std::vector<UnitReport> units;
  };
  Outcome prune(double sparsity, const State& before = {}) const {
    io::Model model = plain_;
    if (!before.empty()) insert_masks(model.graph, model.state, before);
    PruningSettings settings{.method = GetParam().method,
                             .granularity = parse_granularity(GetParam().granularity)};
    if (settings.granularity->kind != Granularity::Kind::SomeOfSeveral)
      settings.sparsity = sparsity;
    // So many of every unit are asked for here, not so many of all.
    if (find_pruning_method(GetParam().method).scope == PruningScope::Global)
      settings.scope = PruningScope::Local;
    train::TokenizedTexts texts(
        {.ids = {2, 5, 8, 7, 3, 2, 6, 9, 13, 17, 3}, .offsets = {0, 5, 11}, .labels = {1, 0}}, {});
    const PruneResult result =
        prune_model(model, {.request = {.settings = settings}, .seed = 5}, &texts, {});
    return {find_masks(model.graph, model.state), result.units};
  }

  io::ScratchDirectory scratch_;
  io::Model plain_;
};

TEST_P(EveryMethod, PrunesAsManyGranulesAsAskedForInEveryUnit) {
  for (const double sparsity : {0.25, 0.5}) {
    const Outcome outcome = prune(sparsity);
    ASSERT_FALSE(outcome.units.empty());
    for (const UnitReport& unit : outcome.units)
      EXPECT_EQ(unit.pruned,
                unit.granularity == "2:4" ? unit.granules : share_of(sparsity, unit.granules))
          << unit.unit;
  }
}

TEST_P(EveryMethod, RepeatsItself) {
  const State first = prune(0.5).masks, second = prune(0.5).masks;
  ASSERT_EQ(first.size(), second.size());
  for (const auto& [name, mask] : first) EXPECT_TRUE(identical(mask, second.at(name))) << name;
}

TEST_P(EveryMethod, KeepsAndCountsWhatIsOutAlready) {
  if (GetParam().granularity == "2:4") return;  // has no second sparsity
  const State first = prune(0.25).masks;
  const Outcome second = prune(0.5, first);
  for (const auto& [name, mask] : first)
    for (std::int64_t i = 0; i < mask.num_elements(); ++i) {
      EXPECT_LE(second.masks.at(name).at(i), mask.at(i)) << name << " " << i;
    }
  for (const UnitReport& unit : second.units)
    EXPECT_EQ(unit.pruned, share_of(0.5, unit.granules)) << unit.unit;
}

INSTANTIATE_TEST_SUITE_P(All, EveryMethod, testing::ValuesIn(every_case()), [](const auto& one) {
  std::string name = one.param.method + "_" + one.param.granularity;
  std::ranges::replace(name, ':', '_');
  return name;
});

}  // namespace
}  // namespace lathe::compress
