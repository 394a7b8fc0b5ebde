#include "lathe/hardware/synthesis/synthesize.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/hardware/testing/lab_design.h"
#include "lathe/hardware/testing/needs_tool.h"

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

TEST(Synthesize, ReadsTheClockOfTheRoutedDesign) {
  const std::string placed =
      "Info: \t         ICESTORM_LC:  1352/ 7680    17%\n"
      "Info: Max frequency for clock 'clk$SB_IO_IN_$glb_clk': 70.10 MHz (PASS at 12.00 MHz)\n"
      "Info: Max frequency for clock 'clk$SB_IO_IN_$glb_clk': 72.30 MHz (PASS at 12.00 MHz)\n";
  EXPECT_FALSE(parse_placement(placed + "ERROR: Unable to place cell\n").has_value());
  const auto placement = parse_placement(placed + "\nInfo: Program finished normally.\n");
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->logic_cells, 1352);
  EXPECT_DOUBLE_EQ(placement->megahertz, 72.3);
}

TEST(Synthesize, GivesWhatBecomesOfEachBlock) {
  LATHE_NEEDS(yosys);
  const auto blocks = synthesize_blocks(emit(testing::lab_design()));
  ASSERT_EQ(blocks.size(), 2U);
  std::int64_t dsp = 0;
  for (const auto& [name, resources] : blocks) {
    EXPECT_GT(resources.lut, 0) << name;
    dsp += resources.dsp;
  }
  EXPECT_EQ(dsp, 16);
}

TEST(Synthesize, KnowsItsTargets) {
  EXPECT_EQ(parse_target("ice40"), SynthesisTarget::Ice40);
  EXPECT_THROW(parse_target("asic"), UserError);
}

}  // namespace
}  // namespace lathe::hardware
