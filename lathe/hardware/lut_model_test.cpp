#include "lathe/hardware/lut_model.h"

#include <gtest/gtest.h>

#include "lathe/hardware/testing/lab_design.h"

namespace lathe::hardware {
namespace {

// What Yosys 0.23 made of the same blocks alone.
TEST(LutModel, IsNearWhatYosysMakesOfTheLabsDesign) {
  const Netlist lab = testing::lab_design();
  EXPECT_NEAR(static_cast<double>(resources_of(lab.call(1)).lut), 29, 29 * 0.25);  // relu
}

// Converters vary most of all blocks: Yosys makes 99 to 179 LUTs of such that differ in a lane.
TEST(LutModel, IsNearWhatYosysMakesOfConverters) {
  EXPECT_NEAR(converter_luts(16, 3, 1, 8), 75, 75 * 0.25);
  EXPECT_NEAR(converter_luts(16, 3, 2, 4), 79, 79 * 0.25);
  EXPECT_NEAR(converter_luts(5, 2, 1, 6), 43, 43 * 0.25);
  EXPECT_NEAR(converter_luts(9, 1, 3, 4), 39, 39 * 0.25);
  EXPECT_EQ(converter_luts(16, 4, 4, 8), 0);
}

// Of LeNet for MNIST, in 8 bits, by Yosys 0.23.
TEST(LutModel, IsNearWhatYosysMakesOfAWindow) {
  Netlist netlist("window");
  const StreamId x = netlist.add_input("x", {.lanes = 1, .size = 1, .vectors = 28 * 28});
  netlist.add_single({.name = "window",
                      .block = "sliding_window",
                      .parameters = {{"height", 28},
                                     {"columns", 28},
                                     {"kernel_h", 5},
                                     {"kernel_w", 5},
                                     {"top", 2},
                                     {"left", 2},
                                     {"bottom", 2},
                                     {"right", 2}},
                      .inputs = {x}});
  EXPECT_NEAR(static_cast<double>(resources_of(netlist.call(0)).lut), 280, 280 * 0.05);
}

TEST(LutModel, CountsABlockWithoutAModelByItsStreams) {
  Netlist netlist("skid");
  const StreamId x = netlist.add_input("x", {.lanes = 3, .size = 10});
  netlist.add({.name = "skid", .block = "skid_buffer", .inputs = {x}});
  EXPECT_EQ(resources_of(netlist.call(0)).lut, 2 * 24);
}

}  // namespace
}  // namespace lathe::hardware
