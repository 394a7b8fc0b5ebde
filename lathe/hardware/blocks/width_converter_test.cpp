#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(WidthConverter, PacksAnyLanesIntoAnyOthers) {
  LATHE_NEEDS(verilator);
  Random random(5);
  Netlist netlist("converters");
  for (int i = 0; i < 24; ++i) {
    const StreamId x =
        netlist.add_input(fmt::format("x{}", i), {.element = draw_element(random, 6),
                                                  .lanes = static_cast<int>(draw(random, 1, 9)),
                                                  .size = draw(random, 1, 20),
                                                  .vectors = draw(random, 1, 5)});
    netlist.add_output(netlist.add_single({.name = fmt::format("by{}", i),
                                           .block = "width_converter",
                                           .parameters = {{"lanes", draw(random, 1, 9)}},
                                           .inputs = {x}}));
  }
  expect_exact(netlist, random);
}

TEST(WidthConverter, MovesTheNarrowSideInEveryCycle) {
  Netlist netlist("converter");
  const StreamId x = netlist.add_input("x", {.lanes = 3, .size = 600});
  netlist.add_output(netlist.add_single(
      {.name = "y", .block = "width_converter", .parameters = {{"lanes", 2}}, .inputs = {x}}));
  EXPECT_EQ(schedule(netlist).cycles, 301);
}

}  // namespace
}  // namespace lathe::hardware
