#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(StreamJoin, WaitsForBothAndPutsTheFirstBelow) {
  LATHE_NEEDS(verilator);
  Random random(4);
  Netlist netlist("joins");
  for (const int lanes : {1, 2, 3}) {
    const Element element = draw_element(random, 12);
    const StreamId a =
        netlist.add_input(fmt::format("a{}", lanes),
                          {.element = element, .lanes = lanes, .size = 6 * lanes, .vectors = 4});
    const StreamId b = netlist.add_input(
        fmt::format("b{}", lanes), {.element = element, .lanes = 2, .size = 12, .vectors = 4});
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("join{}", lanes), .block = "stream_join", .inputs = {a, b}}));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
