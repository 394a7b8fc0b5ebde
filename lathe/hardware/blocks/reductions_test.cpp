#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(RowReduce, TakesTheFirstOfEqualElements) {
  Netlist netlist("rows");
  const StreamId x = netlist.add_input("x", {.element = {.width = 4}, .size = 4, .vectors = 2});
  netlist.add_single(
      {.name = "y", .block = "row_reduce", .parameters = {{"op", 4}}, .inputs = {x}});
  EXPECT_EQ(evaluate(netlist, {{1, 7, 7, 2, -8, -8, -8, -8}}).back(), (Values{1, 0}));
}

TEST(RowReduce, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(13);
  Netlist netlist("rows");
  for (int i = 0; i < 20; ++i) {
    const StreamId x =
        netlist.add_input(fmt::format("x{}", i), {.element = draw_element(random, 12),
                                                  .lanes = static_cast<int>(draw(random, 1, 5)),
                                                  .size = draw(random, 1, 17),
                                                  .vectors = draw(random, 1, 6)});
    netlist.add_output(netlist.add_single({.name = fmt::format("y{}", i),
                                           .block = "row_reduce",
                                           .parameters = {{"op", i % 5}},
                                           .inputs = {x}}));
  }
  expect_exact(netlist, random);
}

TEST(WindowReduce, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(14);
  Netlist netlist("pools");
  for (int i = 0; i < 12; ++i) {
    const std::int64_t count = draw(random, 1, 9);
    const StreamId x =
        netlist.add_input(fmt::format("x{}", i), {.element = draw_element(random, 10),
                                                  .lanes = static_cast<int>(draw(random, 1, 4)),
                                                  .size = draw(random, 1, 9),
                                                  .vectors = count * draw(random, 1, 4)});
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("y{}", i),
         .block = "window_reduce",
         .parameters = {{"count", count},
                        {"op", draw(random, 0, 1)},
                        {"width", draw(random, 2, 12)},
                        {"signed", draw(random, 0, 1)},
                        {"multiplier", draw(random, 1, 1 << draw(random, 0, 12))},
                        {"shift", draw(random, 0, 14)}},
         .inputs = {x}}));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
