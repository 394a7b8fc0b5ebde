// The design of the lab: Linear(4,8) and an activation in fixed:8,3, four inputs and four of eight
// outputs a cycle.
#include "lathe/hardware/testing/lab_design.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/hardware/schedule.h"
#include "lathe/hardware/simulation/icarus.h"
#include "lathe/hardware/simulation/simulate.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(LabDesign, GivesBothBeatsOfAnInputWithinTwelveCycles) {
  const Schedule schedule = hardware::schedule(lab_design());
  EXPECT_EQ(schedule.cycles, 7);
}

TEST(LabDesign, ComputesWhatItsDefinitionSays) {
  LATHE_NEEDS(verilator);
  const Netlist netlist = lab_design();
  const Simulator simulator(netlist);
  const Simulation simulation = simulator.run({{8, -16, 3, 127}});
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
  EXPECT_EQ(simulation.cycles, 7);
  EXPECT_EQ(simulation.outputs[0].size(), 8U);
}

class EveryActivation : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryActivation, OfTheLabIsExact) {
  LATHE_NEEDS(verilator);
  Random random(40);
  expect_exact(lab_design(GetParam()), random, 50);
}

TEST_P(EveryActivation, OfTheLabIsTheSameInIcarus) {
  LATHE_NEEDS(iverilog);
  Random random(41);
  const Netlist netlist = lab_design(GetParam());
  EXPECT_TRUE(run_icarus(netlist, draw_inputs(random, netlist, 20)).is_exact());
}

INSTANTIATE_TEST_SUITE_P(LabDesign, EveryActivation,
                         ::testing::Values("relu", "leaky_relu", "random_leaky_relu"));

// A module that rounds down where the definition rounds to the nearest: the bench must see it.
TEST(Simulation, ShowsWhereADesignDiffersFromItsDefinition) {
  LATHE_NEEDS(verilator);
  const Netlist netlist = lab_design();
  const Emission emission = emit(netlist);
  std::string source;
  for (const std::string& file : emission.sources()) source += emission.files.at(file);
  std::string wrong = source;
  wrong.replace(wrong.find(".MODE      (0)"), 14, ".MODE      (1)");
  const std::vector<bool> visible(netlist.streams().size(), true);
  EXPECT_TRUE(Simulator(netlist, source, visible).run({{8, -16, 3, 127}}).is_exact());
  const Simulation simulation = Simulator(netlist, wrong, visible).run({{8, -16, 3, 127}});
  EXPECT_FALSE(simulation.is_exact());
  EXPECT_GT(simulation.num_differences, 0);
  EXPECT_EQ(simulation.text(netlist).substr(0, 10), "fc1: beat ");
}

TEST(LabDesign, SaysWhereAModuleThatWasChangedIsWrong) {
  LATHE_NEEDS(verilator);
  const Netlist lab = testing::lab_design();
  Emission changed = emit(lab);
  changed.files.at("rtl/relu.sv") += "garbage\n";
  try {
    const Simulator simulator(lab, changed, Waves::None);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(error.message().find("%Error: rtl/relu.sv:28:1: syntax error"), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace lathe::hardware
