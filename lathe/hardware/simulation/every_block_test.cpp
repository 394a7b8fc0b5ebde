// Every block in all three tools: a module that one of them reads in its own way is found here.
#include <gtest/gtest.h>

#include <set>

#include "lathe/core/registry.h"
#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/passes/size_fifos.h"
#include "lathe/hardware/simulation/gate_level.h"
#include "lathe/hardware/simulation/icarus.h"
#include "lathe/hardware/testing/every_block_design.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

Netlist finished_design() {
  return size_fifos(insert_forks(every_block_design())).netlist;
}

std::vector<Values> inputs_of(const Netlist& netlist) {
  Random random(51);
  std::vector<Values> inputs = draw_inputs(random, netlist, 2);
  inputs[1] = {4, 6};  // a length is never 0
  return inputs;
}

TEST(EveryBlock, IsInTheDesign) {
  std::set<std::string> used, registered;
  const Netlist netlist = finished_design();
  for (const Instance& instance : netlist.instances()) used.insert(instance.block);
  for (const std::string& name : Registry<Block>::instance().names()) registered.insert(name);
  EXPECT_EQ(used, registered);
}

TEST(EveryBlock, IsExactInVerilator) {
  LATHE_NEEDS(verilator);
  const Netlist netlist = finished_design();
  const Simulation simulation = Simulator(netlist).run(inputs_of(netlist), {.stall = 0.25});
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
}

TEST(EveryBlock, IsExactInIcarus) {
  LATHE_NEEDS(iverilog);
  const Netlist netlist = finished_design();
  const IcarusResult result = run_icarus(netlist, inputs_of(netlist), 64);
  EXPECT_TRUE(result.is_exact()) << result.differences << " of " << result.beats;
}

TEST(EveryBlock, IsExactAsGates) {
  LATHE_NEEDS(verilator);
  LATHE_NEEDS(yosys);
  const Netlist netlist = finished_design();
  const GateLevelDesign gates = synthesize_gates(netlist);
  EXPECT_EQ(std::count(gates.visible.begin(), gates.visible.end(), false), 0);
  const Simulation simulation =
      gate_level_simulator(netlist, gates).run(inputs_of(netlist), {.stall = 0.25});
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
}

}  // namespace
}  // namespace lathe::hardware
