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

TEST(LutModel, IsNearWhatYosysMakesOfAConverter) {
  Netlist netlist("converter");
  const StreamId x = netlist.add_input("x", {.lanes = 3, .size = 10});
  netlist.add(
      {.name = "by_4", .block = "width_converter", .parameters = {{"lanes", 4}}, .inputs = {x}});
  EXPECT_NEAR(static_cast<double>(resources_of(netlist.call(0)).lut), 283, 283 * 0.25);
}

TEST(LutModel, CountsABlockWithoutAModelByItsStreams) {
  Netlist netlist("skid");
  const StreamId x = netlist.add_input("x", {.lanes = 3, .size = 10});
  netlist.add({.name = "skid", .block = "skid_buffer", .inputs = {x}});
  EXPECT_EQ(resources_of(netlist.call(0)).lut, 2 * 24);
}

}  // namespace
}  // namespace lathe::hardware
