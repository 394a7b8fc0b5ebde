#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(MatrixVector, MultipliesAddsAndRounds) {
  Netlist netlist("small");
  const StreamId x = netlist.add_input("x", {.element = {.width = 8}, .lanes = 2, .size = 3});
  netlist.add_single({.name = "y",
                      .block = "matrix_vector",
                      .parameters = {{"outputs", 2}, {"lanes", 2}, {"width", 8}, {"shift", 1}},
                      .tables = {{"weight", {1, 2, 3, -1, 0, 1}}, {"bias", {10, 1}}},
                      .inputs = {x}});
  // (1 + 4 + 9 + 10) / 2 and (-1 + 3 + 1) / 2, a tie.
  EXPECT_EQ(evaluate(netlist, {{1, 2, 3}}).back(), (Values{12, 2}));
}

TEST(MatrixVector, EqualsItsDefinitionForAnySizeAndParallelism) {
  LATHE_NEEDS(verilator);
  Random random(9);
  Netlist netlist("products");
  for (int i = 0; i < 16; ++i) {
    const std::int64_t groups = i % 4 == 3 ? draw(random, 2, 3) : 1;
    const Stream type{.element = draw_element(random, 9),
                      .lanes = static_cast<int>(draw(random, 1, 5)),
                      .size = draw(random, 1, 11),
                      .vectors = groups * draw(random, 1, 4)};
    const std::int64_t outputs = draw(random, 1, 9);
    const Element weight{.width = static_cast<int>(draw(random, 2, 8))};
    Instance instance{
        .name = fmt::format("y{}", i),
        .block = "matrix_vector",
        .parameters = {{"outputs", outputs},
                       {"lanes", draw(random, 1, 4)},
                       {"groups", groups},
                       {"width", draw(random, 2, 12)},
                       {"signed", draw(random, 0, 1)},
                       {"shift", draw(random, 0, 10)},
                       {"mode", draw(random, 0, 2)}},
        .tables = {{"weight", draw_values(random, weight, outputs * groups * type.size)}},
        .inputs = {netlist.add_input(fmt::format("x{}", i), type)}};
    if (draw(random, 0, 1) != 0)
      instance.tables["bias"] = draw_values(random, {.width = 11}, outputs);
    if (draw(random, 0, 1) != 0) {
      instance.tables["multiplier"] =
          draw_values(random, {.width = 15, .is_signed = false}, outputs);
      instance.parameters["shift"] += 14;
    }
    netlist.add_output(netlist.add_single(instance));
  }
  expect_exact(netlist, random);
}

TEST(MatrixVector, KeepsLargeWeightsInBlockRam) {
  LATHE_NEEDS(verilator);
  Random random(10);
  Netlist netlist("large");
  const StreamId x =
      netlist.add_input("x", {.element = {.width = 8}, .lanes = 2, .size = 32, .vectors = 2});
  netlist.add_output(
      netlist.add_single({.name = "y",
                          .block = "matrix_vector",
                          .parameters = {{"outputs", 64}, {"lanes", 4}, {"width", 8}, {"shift", 9}},
                          .tables = {{"weight", draw_values(random, {.width = 8}, 64 * 32)}},
                          .inputs = {x}}));
  EXPECT_GT(resources(netlist).bram18, 0);
  // Four stages behind the last of 2 x 16 x 16 products.
  EXPECT_EQ(schedule(netlist).cycles, 2 * 16 * 16 + 4);
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
