// What is estimated against what Yosys makes of whole networks that no weight was fitted to: `make
// test` looks at the lab's design, `make test-hardware` at 20 networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lathe/hardware/synthesis/synthesize.h"
#include "lathe/hardware/testing/lab_design.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/hardware/testing/num_designs.h"
#include "lathe/hardware/testing/random_network.h"

namespace lathe::hardware {
namespace {

// Estimated LUTs over those that Yosys makes; what is counted must be exact.
double share_of_luts(const Netlist& netlist) {
  const Resources estimate = resources(netlist);
  const Resources found = synthesize(emit(netlist), SynthesisTarget::Xilinx7).resources;
  EXPECT_EQ(estimate.dsp, found.dsp);
  EXPECT_EQ(estimate.bram18, found.bram18);
  return static_cast<double>(estimate.lut) / static_cast<double>(found.lut);
}

TEST(Estimates, AreNearWhatYosysMakesOfTheLabsDesign) {
  LATHE_NEEDS(yosys);
  EXPECT_NEAR(share_of_luts(testing::lab_design()), 1, 0.25);
}

// Yosys sees that a table of one number makes a constant, and removes all that leads to it.
bool has_constant(const Netlist& netlist) {
  for (const Instance& instance : netlist.instances())
    for (const auto& [name, table] : instance.tables)
      if (name == "table" && std::ranges::all_of(table, [&](auto x) { return x == table[0]; }))
        return true;
  return false;
}

// One in twenty of these networks, of some hundred LUTs each, may be further off than a quarter:
// whether a DSP takes a layer's sum is not known before, and that is an adder for each lane.
TEST(RandomEstimates, AreNearWhatYosysMakesOfNetworks) {
  LATHE_NEEDS(yosys);
  const int count = testing::num_designs(0, 20);
  if (count == 0) GTEST_SKIP() << "it is long: make test-hardware runs it";
  int drawn = 0, num_far = 0;
  for (std::uint64_t seed = 9400; drawn < count; ++seed) {
    testing::RandomNetwork network(seed);
    const Netlist netlist = network.draw_design().netlist;
    if (has_constant(netlist)) continue;
    ++drawn;
    SCOPED_TRACE(fmt::format("network {}", seed));
    const double share = share_of_luts(netlist);
    EXPECT_NEAR(share, 1, 0.35);
    if (std::abs(share - 1) > 0.25) ++num_far;
  }
  EXPECT_LE(20 * num_far, count);
}

}  // namespace
}  // namespace lathe::hardware
