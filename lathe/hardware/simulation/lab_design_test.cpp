// The design of the lab: Linear(4,8) and ReLU in fixed:8,3, four inputs and four of eight outputs a
// cycle.
#include "lathe/hardware/testing/lab_design.h"

#include <gtest/gtest.h>

#include "lathe/hardware/schedule.h"
#include "lathe/hardware/simulation/simulate.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

TEST(LabDesign, GivesBothBeatsOfAnInputWithinTwelveCycles) {
  const Schedule schedule = hardware::schedule(testing::lab_design());
  EXPECT_EQ(schedule.cycles, 7);
}

TEST(LabDesign, ComputesWhatItsDefinitionSays) {
  LATHE_NEEDS(verilator);
  const Netlist netlist = testing::lab_design();
  const Simulator simulator(netlist);
  const Simulation simulation = simulator.run({{8, -16, 3, 127}});
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
  EXPECT_EQ(simulation.cycles, 7);
  EXPECT_EQ(simulation.outputs[0].size(), 8U);
}

}  // namespace
}  // namespace lathe::hardware
