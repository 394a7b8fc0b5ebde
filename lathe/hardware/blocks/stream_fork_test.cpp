#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(StreamFork, GivesEachBeatToEveryBranchWhenItIsReady) {
  LATHE_NEEDS(verilator);
  Random random(3);
  Netlist netlist("forks");
  for (const int branches : {2, 3, 5}) {
    const StreamId x =
        netlist.add_input(fmt::format("x{}", branches), {.element = {.width = 5}, .size = 40});
    for (const StreamId branch : netlist.add({.name = fmt::format("fork{}", branches),
                                 .block = "stream_fork",
                                 .parameters = {{"branches", branches}},
                                 .inputs = {x}}))
      netlist.add_output(branch);
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
