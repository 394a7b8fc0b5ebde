#include "lathe/hardware/passes/insert_forks.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/hardware/testing/residual_design.h"

namespace lathe::hardware {
namespace {

TEST(InsertForks, GivesEveryStreamOneReader) {
  const Netlist before = testing::residual_design(8, 2, 3);
  EXPECT_EQ(error_text([&] { verify(before); }), "stream \"x\" has 2 readers, not one");
  const Netlist after = insert_forks(before);
  EXPECT_NO_THROW(verify(after));
  ASSERT_EQ(after.instances().size(), 3U);
  EXPECT_EQ(after.instances()[0].name, "x_fork");
  const std::vector<Values> inputs = {
      {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 1, 0, 0, 0, 0, 9}};
  EXPECT_EQ(evaluate(after, inputs)[after.outputs()[0]],
            evaluate(before, inputs)[before.outputs()[0]]);
}

TEST(InsertForks, RefusesAStreamThatNobodyReads) {
  Netlist netlist("design");
  const StreamId x = netlist.add_input("x", {.element = {.width = 4}});
  netlist.add_single({.name = "lost", .block = "relu", .inputs = {x}});
  netlist.add_output(netlist.add_single({.name = "y", .block = "relu", .inputs = {x}}));
  EXPECT_EQ(error_text([&] { insert_forks(netlist); }), "stream \"lost\" is read by nobody");
}

TEST(ConvertLanes, AddsAConverterOnlyWhereItIsNeeded) {
  Netlist netlist("design");
  const StreamId x = netlist.add_input("x", {.lanes = 2, .size = 6});
  EXPECT_EQ(convert_lanes(netlist, x, 2), x);
  const StreamId by_3 = convert_lanes(netlist, x, 3);
  EXPECT_EQ(netlist.stream_name(by_3), "x_by_3");
  EXPECT_EQ(netlist.type(by_3).beats(), 2);
  EXPECT_EQ(netlist.stream_name(convert_lanes(netlist, x, 3)), "x_by_3_again");
}

}  // namespace
}  // namespace lathe::hardware
