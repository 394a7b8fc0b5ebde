// What is estimated against what Yosys makes of whole networks that no weight was fitted to: `make
// test` looks at the lab's design, `make test-hardware` at 20 networks and an encoder.
#include <gtest/gtest.h>

#include "lathe/hardware/synthesis/synthesize.h"
#include "lathe/hardware/testing/lab_design.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/hardware/testing/num_designs.h"
#include "lathe/hardware/testing/random_encoder.h"
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

// Seeds that nothing was fitted to.
TEST(RandomEstimates, AreNearWhatYosysMakesOfNetworks) {
  LATHE_NEEDS(yosys);
  const int count = testing::num_designs(0, 20);
  if (count == 0) GTEST_SKIP() << "it is long: make test-hardware runs it";
  int drawn = 0;
  for (std::uint64_t seed = 9500; drawn < count; ++seed) {
    testing::RandomNetwork network(seed);
    const Netlist netlist = network.draw_design().netlist;
    if (testing::has_constant(netlist)) continue;
    ++drawn;
    SCOPED_TRACE(fmt::format("network {}", seed));
    EXPECT_NEAR(share_of_luts(netlist), 1, 0.25);
  }
}

TEST(RandomEstimates, AreNearWhatYosysMakesOfAnEncoder) {
  LATHE_NEEDS(yosys);
  if (testing::num_designs(0) == 0) GTEST_SKIP() << "it is long: make test-hardware runs it";
  EXPECT_NEAR(share_of_luts(testing::random_encoder(100).netlist), 1, 0.25);
}

}  // namespace
}  // namespace lathe::hardware
