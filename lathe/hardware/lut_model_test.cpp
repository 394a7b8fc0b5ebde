#include "lathe/hardware/lut_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/hardware/testing/lab_design.h"

namespace lathe::hardware {
namespace {

// What Yosys 0.23 made of the same blocks alone.
TEST(LutModel, IsNearWhatYosysMakesOfTheLabsDesign) {
  const Netlist lab = testing::lab_design();
  EXPECT_NEAR(static_cast<double>(resources_of(lab.call(1)).lut), 29, 29 * 0.25);  // relu
}

TEST(LutModel, IsNearWhatYosysMakesOfConverters) {
  EXPECT_NEAR(converter_luts(11, 2, 3, 6), 63, 63 * 0.25);
  EXPECT_NEAR(converter_luts(12, 5, 2, 5), 100, 100 * 0.25);
  EXPECT_NEAR(converter_luts(8, 4, 5, 8), 158, 158 * 0.25);
  EXPECT_NEAR(converter_luts(4, 4, 1, 6), 44, 44 * 0.25);
  EXPECT_EQ(converter_luts(16, 4, 4, 8), 0);
}

TEST(LutModel, IsNearWhatYosysMakesOfARoot) {
  Netlist netlist("rows");
  const auto one = [&](const char* name, int width, bool is_signed) {
    return netlist.add_input(
        name, {.element = {.width = width, .is_signed = is_signed}, .lanes = 1, .size = 1});
  };
  netlist.add_single({.name = "root",
                      .block = "row_root",
                      .parameters = {{"size", 8}, {"epsilon", 158}, {"fraction", 3}},
                      .inputs = {one("sum", 11, true), one("squares", 22, false)}});
  EXPECT_NEAR(static_cast<double>(resources_of(netlist.call(0)).lut), 193, 193 * 0.05);
}

TEST(LutModel, CountsTheWordsOfAMemoryThatAreDifferentFunctions) {
  EXPECT_EQ(read_only_luts({.width = 4, .per_word = 1, .elements = {3, 9}}), 0);
  // Bits 0 and 3 are one function, and its opposite; bit 1 is a bit of the address, bit 2 constant.
  EXPECT_EQ(read_only_luts({.width = 4, .per_word = 1, .elements = {8, 1, 3, 10}}), 1);
}

TEST(LutModel, LeavesOutBitsThatNeverChange) {
  Netlist netlist("signs");
  const StreamId x = netlist.add_input("x", {.element = {.width = 5}, .lanes = 4, .size = 8});
  const StreamId y = netlist.add_single({.name = "act", .block = "relu", .inputs = {x}});
  const StreamId z = netlist.add_single(
      {.name = "convert", .block = "width_converter", .parameters = {{"lanes", 2}}, .inputs = {y}});
  EXPECT_EQ(changing_bits(netlist), (std::vector<int>{5, 4, 4}));
  netlist.add_output(z);
  EXPECT_EQ(resources(netlist).lut,
            resources_of(netlist.call(0)).lut + std::lround(converter_luts(8, 4, 2, 4)));
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
  EXPECT_NEAR(static_cast<double>(resources_of(netlist.call(0)).lut), 280, 280 * 0.25);
}

}  // namespace
}  // namespace lathe::hardware
