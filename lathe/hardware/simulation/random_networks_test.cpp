// Random quantized networks, mapped, emitted and simulated: `make test` draws some, `make
// test-hardware` 300.
#include <gtest/gtest.h>

#include "lathe/hardware/simulation/gate_level.h"
#include "lathe/hardware/simulation/icarus.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/hardware/testing/num_designs.h"
#include "lathe/hardware/testing/random_design.h"
#include "lathe/hardware/testing/random_network.h"

namespace lathe::hardware {
namespace {

using namespace testing;

std::uint64_t seed_of(int network) {
  return 5000 + static_cast<std::uint64_t>(network);
}

// Several under one top, because a model costs most of its time once.
constexpr int kBeside = 10;

TEST(RandomNetworks, AreExactAndOnTimeWhateverTheStalls) {
  LATHE_NEEDS(verilator);
  int num_images = 0, num_residuals = 0;
  for (int begin = 0; begin < num_designs(20); begin += kBeside) {
    Netlist all("networks");
    std::vector<Values> inputs;
    for (int i = begin; i < begin + kBeside; ++i) {
      SCOPED_TRACE(fmt::format("network {}", i));
      RandomNetwork network(seed_of(i));
      const Design design = network.draw_design();
      num_images += network.graph.nodes_of("integer_conv2d").empty() ? 0 : 1;
      num_residuals += network.graph.nodes_of("integer_add").empty() ? 0 : 1;
      for (Values& input : network.draw_examples(design, 3)) inputs.push_back(std::move(input));
      add_beside(all, design.netlist, fmt::format("n{}.", i));
    }
    const Simulator simulator(all);
    for (const double stall : {0.0, 0.25, 0.5}) {
      SCOPED_TRACE(fmt::format("networks from {} on, stalls {} %", begin, 100 * stall));
      const Simulation simulation = simulator.run(inputs, {.stall = stall, .seed = seed_of(begin)});
      EXPECT_TRUE(simulation.is_exact()) << simulation.text(all);
      if (stall == 0) expect_on_time(all, simulation, 3);
    }
  }
  EXPECT_GT(num_images, 0);
  EXPECT_GT(num_residuals, 0);
}

TEST(RandomNetworks, AreTheSameInIcarusAndAsGates) {
  LATHE_NEEDS(verilator);
  LATHE_NEEDS(iverilog);
  LATHE_NEEDS(yosys);
  for (int i = 0; i < num_designs(1, 10); ++i) {
    SCOPED_TRACE(fmt::format("network {}", i));
    RandomNetwork network(seed_of(i));
    const Design design = network.draw_design();
    const std::vector<Values> inputs = network.draw_examples(design, 2);
    const IcarusResult icarus = run_icarus(design.netlist, inputs, 64);
    EXPECT_TRUE(icarus.is_exact()) << icarus.differences << " of " << icarus.beats;
    const GateLevelDesign gates = synthesize_gates(design.netlist);
    const Simulation simulation =
        gate_level_simulator(design.netlist, gates).run(inputs, {.stall = 0.25});
    EXPECT_TRUE(simulation.is_exact()) << simulation.text(design.netlist);
  }
}

}  // namespace
}  // namespace lathe::hardware
