#include "lathe/study/samplers/known_space.h"

#include <gtest/gtest.h>

#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

std::string names(const UnitSpace& space) {
  std::string text;
  for (const auto& coordinate : space.coordinates()) text += coordinate.name + " ";
  return text;
}

std::string names(const Space& space) {
  std::string text;
  for (const auto& parameter : space) text += parameter.name + " ";
  return text;
}

TEST(KnownSpace, SharesWhatEveryTrialHad) {
  const auto unit = shared(FloatDistribution{});
  const auto whole = shared(IntDistribution{0, 9});
  const auto wider = shared(IntDistribution{0, 99});
  const auto single = shared(IntDistribution{3, 3});
  History history({Direction::Minimize});
  KnownSpace known;

  add_finished(history, {{"rate", unit, 0.5}, {"depth", whole, 3}, {"one", single, 3}}, {1});
  known.update(history);
  EXPECT_EQ(names(known.shared()), "depth rate ");
  EXPECT_EQ(names(known.all()), "rate depth one ");

  add_finished(history, {{"rate", unit, 0.5}, {"depth", wider, 30}, {"extra", unit, 0}}, {1});
  add_finished(history, {}, {}, {}, TrialState::Fail);  // says nothing
  known.update(history);
  EXPECT_EQ(names(known.shared()), "rate ");
  EXPECT_EQ(names(known.all()), "rate depth one extra ");
  EXPECT_EQ(*known.all()[1].distribution, *wider);
}

TEST(KnownSpace, GivesWayToADeclaredSpaceWithoutItsConditionalPart) {
  const Space space = {{"width", shared(IntDistribution{1, 8})},
                       {"extra", shared(FloatDistribution{}), "width", {8}},
                       {"fixed", shared(IntDistribution{5, 5})}};
  Proposal proposal;
  proposal.space = &space;
  EXPECT_EQ(names(joint_space(proposal, KnownSpace())), "width ");
  EXPECT_EQ(names(full_space(proposal, KnownSpace())), "width extra fixed ");
}

}  // namespace
}  // namespace lathe::study
