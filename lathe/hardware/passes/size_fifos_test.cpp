#include "lathe/hardware/passes/size_fifos.h"

#include <gtest/gtest.h>

#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/schedule.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/hardware/testing/residual_design.h"

namespace lathe::hardware {
namespace {

using namespace testing;

std::size_t fifo_of(const Netlist& netlist, const std::string& stream) {
  for (std::size_t i = 0; i < netlist.instances().size(); ++i)
    if (netlist.instances()[i].name == stream + "_fifo") return i;
  ADD_FAILURE() << "no FIFO behind " << stream;
  return 0;
}

// 16 beats go into the layer before it gives one. The fork holds the last of them, the others must
// wait beside the layer: 15.
TEST(SizeFifos, LetsAResidualWaitForItsLayer) {
  const SizedNetlist sized =
      size_fifos(insert_forks(residual_design(64, 4, 20)), FifoGoal::Liveness);
  ASSERT_EQ(sized.fifos.size(), 1U);
  EXPECT_EQ(sized.fifos[0].stream, "x_fork_1");
  EXPECT_EQ(sized.fifos[0].depth, 15);
  EXPECT_TRUE(sized.fifos[0].is_tight);
}

TEST(SizeFifos, OfOneBeatLessDeadlocksInSimulation) {
  LATHE_NEEDS(verilator);
  Random random(11);
  SizedNetlist sized = size_fifos(insert_forks(residual_design(32, 4, 3)), FifoGoal::Liveness);
  ASSERT_EQ(sized.fifos.size(), 1U);
  EXPECT_EQ(sized.fifos[0].depth, 7);
  expect_exact(sized.netlist, random);
  sized.netlist.set_parameter(fifo_of(sized.netlist, "x_fork_1"), "depth", 6);
  for (const double stall : {0.0, 0.5}) {
    const Simulation simulation =
        Simulator(sized.netlist).run(draw_inputs(random, sized.netlist, 2), {.stall = stall});
    EXPECT_TRUE(simulation.is_deadlocked());
    EXPECT_EQ(simulation.num_differences, 0);
  }
}

// Each layer takes a vector in 16 of its 256 cycles and gives one over all of them: without a
// vector's room between them they wait for each other.
TEST(SizeFifos, KeepsChainedLayersBusy) {
  Netlist netlist("chain");
  StreamId x = netlist.add_input("x", {.lanes = 4, .size = 64, .vectors = 10});
  for (const char* name : {"a", "b", "c"}) x = netlist.add_single(linear(name, netlist, x, 64, 4));
  netlist.add_output(x);
  EXPECT_GT(schedule(netlist, {.frames = 3}).frame_interval(), 4500);
  const SizedNetlist sized = size_fifos(netlist);
  EXPECT_EQ(sized.frame_interval, 10 * 16 * 16);
  ASSERT_EQ(sized.fifos.size(), 2U);
  for (const FifoChoice& fifo : sized.fifos) {
    EXPECT_EQ(fifo.depth, 14);
    EXPECT_FALSE(fifo.is_tight);
  }
}

}  // namespace
}  // namespace lathe::hardware
