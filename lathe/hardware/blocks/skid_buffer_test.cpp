#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(SkidBuffer, PassesEveryBeatOn) {
  LATHE_NEEDS(verilator);
  Random random(1);
  Netlist netlist("skids");
  for (const int lanes : {1, 3, 9}) {
    StreamId x =
        netlist.add_input(fmt::format("x{}", lanes),
                          {.element = draw_element(random, 13), .lanes = lanes, .size = 20});
    for (const char* name : {"first", "second"})
      x = netlist.add_single(
          {.name = fmt::format("{}{}", name, lanes), .block = "skid_buffer", .inputs = {x}});
    netlist.add_output(x);
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
