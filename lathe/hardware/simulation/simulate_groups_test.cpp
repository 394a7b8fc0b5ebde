#include "lathe/hardware/simulation/simulate_groups.h"

#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/lab_design.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(SimulateGroups, ShowsWhatOneRunShows) {
  LATHE_NEEDS(verilator);
  Random random(40);
  const Netlist netlist = lab_design();
  const Simulator simulator(netlist);
  const std::vector<Values> inputs = draw_inputs(random, netlist, 10);
  const Simulation one = simulator.run(inputs);
  ThreadPool pool(2);
  const GroupedSimulation several = simulate_groups(simulator, inputs, 4, {}, &pool);
  EXPECT_EQ(several.groups, 3);
  EXPECT_TRUE(several.all.is_exact()) << several.all.text(netlist);
  EXPECT_EQ(several.all.num_compared, one.num_compared);
  EXPECT_EQ(several.all.outputs, one.outputs);
  EXPECT_EQ(several.all.expected, one.expected);
  EXPECT_EQ(several.all.cycles, several.predicted_cycles);
  EXPECT_GT(several.all.cycles, one.cycles);  // each group waits for its first result
}

TEST(SimulateGroups, HoldAsMuchAsMemoryDoes) {
  Netlist netlist;
  const StreamId x = netlist.add_input("x", {.size = 1 << 20, .vectors = 8});
  netlist.add_output(netlist.add_single({.name = "y", .block = "relu", .inputs = {x}}));
  EXPECT_EQ(frames_at_once(netlist), 1);  // two streams of 8 million numbers of eight bytes
  EXPECT_GT(frames_at_once(lab_design()), 100000);
  EXPECT_GT(frames_at_once(lab_design("random_leaky_relu")), std::int64_t{1} << 60);
}

}  // namespace
}  // namespace lathe::hardware
