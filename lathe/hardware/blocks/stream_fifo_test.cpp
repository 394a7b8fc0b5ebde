#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

// Depths around the border where block RAM begins, at 64 words and 8192 bits.
TEST(StreamFifo, KeepsTheOrderAtAnyDepth) {
  LATHE_NEEDS(verilator);
  Random random(2);
  Netlist netlist("fifos");
  for (const int depth : {1, 2, 3, 7, 64, 66, 100}) {
    const StreamId x =
        netlist.add_input(fmt::format("x{}", depth),
                          {.element = {.width = 16}, .lanes = 8, .size = 8, .vectors = 50});
    netlist.add_output(netlist.add_single({.name = fmt::format("fifo{}", depth),
                                           .block = "stream_fifo",
                                           .parameters = {{"depth", depth}},
                                           .inputs = {x}}));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
