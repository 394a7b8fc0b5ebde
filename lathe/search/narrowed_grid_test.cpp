#include "lathe/search/narrowed_grid.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/search/space_file.h"

namespace lathe::search {
namespace {

// Five trials over layers, heads and hidden sizes; the last is far below the others.
study::History history_of(const CandidateSpace& space) {
  struct Point {
    std::int64_t layers, heads, hidden;
    double result;
  };
  study::History history({study::Direction::Maximize});
  history.change([&](std::vector<study::TrialRecord>& trials) {
    for (const Point& point : {Point{1, 2, 48, 0.81}, Point{2, 2, 48, 0.85}, Point{2, 3, 48, 0.9},
                               Point{2, 2, 64, 0.82}, Point{2, 4, 80, 0.5}}) {
      study::TrialRecord trial{.number = static_cast<int>(trials.size()),
                               .state = study::TrialState::Complete,
                               .values = {point.result}};
      for (const study::SpaceParameter& each : space.parameters()) {
        const std::int64_t value = each.name == "layers"  ? point.layers
                                   : each.name == "heads" ? point.heads
                                                          : point.hidden;
        trial.parameters.push_back({each.name, each.distribution,
                                    study::to_internal(*each.distribution, value, each.name)});
      }
      trials.push_back(std::move(trial));
    }
  });
  return history;
}

std::string text_of(const std::vector<std::pair<std::string, study::Choice>>& point) {
  std::string text;
  for (const auto& [name, value] : point)
    text += fmt::format("{} {} ", name, study::to_json(value));
  return text;
}

CandidateSpace small_space() {
  return CandidateSpace(parse_search_space(
      "[architecture]\nlayers = [1, 2]\nheads = [2, 3, 4]\nhidden = [48, 64, 80]\n", "s.toml"));
}

TEST(NarrowedGrid, HasTheValuesOfGoodTrialsAndWhatCanBeBuilt) {
  const CandidateSpace space = small_space();
  const study::History history = history_of(space);
  const auto points = narrowed_grid(space, {&history}, 60, 0.8);
  std::vector<std::string> texts;
  for (const auto& point : points) texts.push_back(text_of(point));
  // Two layers and one, 2 and 3 heads, 48 and 64 wide; 3 heads do not divide 64.
  EXPECT_EQ(texts.size(), 6U);
  EXPECT_EQ(texts.front(), "layers 2 heads 3 hidden 48 ");
  for (const std::string& text : texts) {
    EXPECT_EQ(text.find("heads 4"), std::string::npos);
    EXPECT_EQ(text.find("heads 3 hidden 64"), std::string::npos);
  }
}

TEST(NarrowedGrid, FixesParametersUntilItIsSmallEnough) {
  const CandidateSpace space = small_space();
  const study::History history = history_of(space);
  const auto points = narrowed_grid(space, {&history}, 4, 0.8);
  EXPECT_LE(points.size(), 4U);
  EXPECT_EQ(text_of(points.front()), "layers 2 heads 3 hidden 48 ");
  EXPECT_EQ(narrowed_grid(space, {&history}, 1, 0.8).size(), 1U);
}

TEST(NarrowedGrid, NeedsATrialAbove) {
  const CandidateSpace space = small_space();
  const study::History history = history_of(space);
  EXPECT_EQ(error_text([&] { narrowed_grid(space, {&history}, 60, 0.95); }),
            "above 0.95: no complete trial is");
}

}  // namespace
}  // namespace lathe::search
