#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(ElementWise, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(8);
  Netlist netlist("pairs");
  for (int i = 0; i < 24; ++i) {
    const Stream a{.element = draw_element(random, 20),
                   .lanes = static_cast<int>(draw(random, 1, 4)),
                   .size = draw(random, 1, 10),
                   .vectors = draw(random, 1, 6)};
    const bool is_row_wise = i % 3 == 0;
    Stream b = a;
    b.element = draw_element(random, 20);
    if (is_row_wise) b.lanes = 1, b.size = 1;
    const std::int64_t op = draw(random, 0, 3);
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("y{}", i),
         .block = "element_wise",
         .parameters = {{"op", op},
                        {"multiplier_a", op == 2 ? 1 : draw(random, 1, 1 << draw(random, 0, 17))},
                        {"multiplier_b", op == 2 ? 1 : draw(random, 1, 1 << draw(random, 0, 17))},
                        {"per_row", is_row_wise ? 1 : 0},
                        {"width", draw(random, 2, 20)},
                        {"signed", draw(random, 0, 1)},
                        {"multiplier", draw(random, 1, 1 << draw(random, 0, 17))},
                        {"shift", draw(random, 0, 30)},
                        {"mode", draw(random, 0, 2)}},
         .inputs = {netlist.add_input(fmt::format("a{}", i), a),
                    netlist.add_input(fmt::format("b{}", i), b)}}));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
