#include "lathe/hardware/schedule.h"

#include <gtest/gtest.h>

#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/testing/residual_design.h"

namespace lathe::hardware {
namespace {

TEST(Schedule, OfAFoldedLayerIsItsProductsAndThePipeline) {
  Netlist netlist("folded");
  const StreamId x = netlist.add_input("x", {.lanes = 4, .size = 64, .vectors = 20});
  netlist.add_output(netlist.add_single(testing::linear("fc", netlist, x, 64, 4)));
  const Schedule schedule = hardware::schedule(netlist);
  EXPECT_EQ(bottleneck_cycles(netlist), 20 * 16 * 16);
  EXPECT_EQ(schedule.cycles, 20 * 16 * 16 + 4);
  EXPECT_EQ(schedule.streams[x].count, 20 * 16);
  EXPECT_EQ(schedule.streams[x].last, 19 * 256 + 15);
}

TEST(Schedule, FramesFollowEachOtherAtThePaceOfTheSlowestBlock) {
  Netlist netlist("folded");
  const StreamId x = netlist.add_input("x", {.lanes = 4, .size = 16, .vectors = 3});
  netlist.add_output(netlist.add_single(testing::linear("fc", netlist, x, 16, 4)));
  EXPECT_EQ(hardware::schedule(netlist, {.frames = 4}).frame_interval(), 3 * 4 * 4);
}

// A beat a cycle: the next enters while the last stands there, and needs a place of its own.
TEST(Schedule, SaysHowMuchRoomAQueueNeeds) {
  Netlist netlist("queue");
  const StreamId x = netlist.add_input("x", {.size = 10});
  const StreamId queue = netlist.add_single(
      {.name = "queue", .block = "stream_fifo", .parameters = {{"depth", 8}}, .inputs = {x}});
  netlist.add_output(netlist.add_single({.name = "y", .block = "relu", .inputs = {queue}}));
  EXPECT_EQ(hardware::schedule(netlist).room, (std::vector<std::int64_t>{2, 0}));
}

TEST(Schedule, DoesNothingInCyclesInWhichNothingHappens) {
  Netlist netlist("paced");
  const StreamId x = netlist.add_input("x", {.size = 2});
  netlist.add_output(netlist.add_single(testing::linear("fc", netlist, x, 2, 1)));
  const Schedule schedule = hardware::schedule(netlist, {.frames = 2, .frame_interval = 1000000});
  EXPECT_EQ(schedule.streams[x].last, 1500000);
  EXPECT_GT(schedule.cycles, 1500000);
  EXPECT_LT(schedule.work, 100);
}

// The fork has given the sum a beat that waits for the layer, which waits for its second beat.
TEST(Schedule, SaysWhereADesignStops) {
  const Netlist netlist = insert_forks(testing::residual_design(8, 2, 1));
  const Schedule schedule = hardware::schedule(netlist);
  ASSERT_TRUE(schedule.is_deadlocked());
  std::vector<std::string> names;
  for (const StreamId stream : schedule.stuck) names.push_back(netlist.stream_name(stream));
  EXPECT_EQ(names, (std::vector<std::string>{"x", "x_fork_1"}));
}

}  // namespace
}  // namespace lathe::hardware
