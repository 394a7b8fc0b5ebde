#include "lathe/engine/cpu/column_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/core/thread_pool.h"

namespace lathe::engine {
namespace {

constexpr ColumnPieces::Group kKept{.panels = 24, .panel_cycles = 50000, .piece_cycles = 5000};
constexpr ColumnPieces::Group kOther{.panels = 24, .panel_cycles = 200000, .piece_cycles = 900000};

TEST(ColumnPieces, GivesEachPanelToOneThread) {
  ThreadPool pool(4);
  for (const int threads : {1, 2, 4}) {
    std::vector<ColumnPieces::Group> groups(5, kKept);
    groups.push_back(kOther);
    groups.push_back({.panels = 0});
    ColumnPieces pieces(groups, threads);
    std::vector<std::vector<std::atomic<int>>> taken;
    for (const ColumnPieces::Group& group : groups)
      taken.emplace_back(static_cast<std::size_t>(group.panels));
    pool.run(threads, [&](std::int64_t task, int) {
      while (const auto piece = pieces.take(static_cast<int>(task))) {
        EXPECT_LE(piece->count, pieces.most_panels(piece->group));
        for (std::int64_t i = 0; i < piece->count; ++i)
          ++taken[piece->group][static_cast<std::size_t>(piece->first + i)];
      }
    });
    for (const auto& group : taken)
      for (const std::atomic<int>& times : group) EXPECT_EQ(times, 1);
  }
}

TEST(ColumnPieces, TakesLessAsLessIsLeft) {
  ColumnPieces pieces(std::vector<ColumnPieces::Group>(16, kKept), 16);
  std::vector<std::int64_t> counts;
  while (const auto piece = pieces.take(3)) counts.push_back(piece->count);
  EXPECT_EQ(counts.front(), 12);  // half of a thread's share
  EXPECT_EQ(counts.back(), 1);
  EXPECT_GT(std::ranges::count(counts, 1), 16);
  EXPECT_LT(counts.size(), 16 * 24 / 2U);
}

TEST(ColumnPieces, BeginsWithOwnRowsAndHelpsOthersThen) {
  ColumnPieces pieces(std::vector<ColumnPieces::Group>(2, kKept), 2);
  std::vector<std::size_t> groups;
  while (const auto piece = pieces.take(1)) groups.push_back(piece->group);
  EXPECT_EQ(groups.front(), 1U);
  EXPECT_EQ(groups.back(), 0U);
}

TEST(ColumnPieces, LeavesForTheEndWhatIsCheapInSmallPieces) {
  ColumnPieces pieces({kKept, kOther, kKept, kOther}, 4);
  std::vector<bool> are_cheap;
  while (const auto piece = pieces.take(0)) {
    are_cheap.push_back(piece->group % 2 == 0);
    const bool is_last = piece->first + piece->count == 24;
    EXPECT_GE(piece->count, are_cheap.back() || is_last ? 1 : 3);
  }
  EXPECT_FALSE(are_cheap.front());
  EXPECT_TRUE(are_cheap.back());
  EXPECT_TRUE(std::ranges::is_sorted(are_cheap));
}

TEST(ColumnPieces, TakesPanelsOfNoRowsAtOnce) {
  ColumnPieces pieces({{.panels = 24, .panel_cycles = 0, .piece_cycles = 500}}, 4);
  EXPECT_EQ(pieces.take(2)->count, 24);
  EXPECT_FALSE(pieces.take(0).has_value());
}

TEST(ColumnPieces, GivesOneThreadWholeGroups) {
  ColumnPieces pieces(std::vector<ColumnPieces::Group>(3, kKept), 1);
  for (int group = 0; group < 3; ++group) EXPECT_EQ(pieces.take(0)->count, 24);
  EXPECT_FALSE(pieces.take(0).has_value());
}

}  // namespace
}  // namespace lathe::engine
