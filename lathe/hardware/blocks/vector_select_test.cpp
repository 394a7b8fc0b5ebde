#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(VectorSelect, PassesOneVectorOfAFrame) {
  Netlist netlist;
  const StreamId x = netlist.add_input("x", {.lanes = 2, .size = 2, .vectors = 3});
  const StreamId y = netlist.add_single(
      {.name = "y", .block = "vector_select", .parameters = {{"index", 1}}, .inputs = {x}});
  netlist.add_output(y);
  EXPECT_EQ(evaluate(netlist, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}})[y], (Values{3, 4, 9, 10}));
}

TEST(VectorSelect, SimulatesExactly) {
  LATHE_NEEDS(verilator);
  Random random(50);
  Netlist netlist("selects");
  for (const auto& [vectors, index] :
       {std::pair{1, 0}, std::pair{2, 0}, std::pair{2, 1}, std::pair{5, 0}, std::pair{5, 3}}) {
    const std::string name = fmt::format("x{}_{}", vectors, index);
    const StreamId x = netlist.add_input(name, {.element = draw_element(random, 12),
                                                .lanes = static_cast<int>(draw(random, 1, 4)),
                                                .size = draw(random, 1, 9),
                                                .vectors = vectors});
    netlist.add_output(netlist.add_single({.name = name + "_y",
                                           .block = "vector_select",
                                           .parameters = {{"index", index}},
                                           .inputs = {x}}));
  }
  expect_exact(netlist, random, 4);
}

}  // namespace
}  // namespace lathe::hardware
