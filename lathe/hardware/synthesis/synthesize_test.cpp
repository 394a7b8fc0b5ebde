#include "lathe/hardware/synthesis/synthesize.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

TEST(Synthesize, CountsTheCellsOfTheLastReport) {
  const Synthesis found = parse_statistics(
      "=== part ===\n\n   Number of cells:                  9\n     LUT2                           "
      " 9\n"
      "\n=== top ===\n\n   Number of wires:                 10\n   Number of cells:                "
      " 40\n"
      "     DSP48E1                        16\n     FDRE                           12\n"
      "     LUT2                            3\n     LUT6                            4\n"
      "     RAM32M                          2\n     RAMB36E1                        1\n"
      "     RAMB18E1                        2\n\n",
      SynthesisTarget::Xilinx7);
  EXPECT_EQ(found.resources, (Resources{.dsp = 16, .bram18 = 4, .lut = 3 + 4 + 8}));
  EXPECT_EQ(found.registers, 12);
  EXPECT_EQ(found.cells.at("LUT2"), 3);
}

TEST(Synthesize, KnowsItsTargets) {
  EXPECT_EQ(parse_target("ice40"), SynthesisTarget::Ice40);
  EXPECT_THROW(parse_target("asic"), UserError);
}

}  // namespace
}  // namespace lathe::hardware
