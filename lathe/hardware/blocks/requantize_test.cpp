#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(Requantization, RoundsTiesByItsMode) {
  const auto rounded = [](IntegerRounding mode) {
    Values result;
    for (const int x : {-6, -5, -2, 2, 3, 6, 10, 1000})
      result.push_back(
          Requantization{.shift = 2, .rounding = mode, .element = {.width = 5}}.apply(x));
    return result;
  };
  EXPECT_EQ(rounded(IntegerRounding::NearestEven), (Values{-2, -1, 0, 0, 1, 2, 2, 15}));
  EXPECT_EQ(rounded(IntegerRounding::Floor), (Values{-2, -2, -1, 0, 0, 1, 2, 15}));
  EXPECT_EQ(rounded(IntegerRounding::HalfUp), (Values{-1, -1, 0, 1, 1, 2, 3, 15}));
}

// Every input of 12 bits, in every mode, with shifts from the left to beyond the width.
TEST(Requantize, EqualsItsDefinitionOnEveryInput) {
  LATHE_NEEDS(verilator);
  Netlist netlist("exhaustive");
  std::vector<Values> inputs;
  Values all;
  for (int x = -2048; x < 2048; ++x) all.push_back(x);
  for (int mode = 0; mode < 3; ++mode)
    for (const int shift : {-2, 0, 1, 2, 5, 12, 15}) {
      const std::string name = fmt::format("m{}s{}", mode, shift + 2);
      const StreamId x =
          netlist.add_input("x" + name, {.element = {.width = 12}, .lanes = 8, .size = 4096});
      inputs.push_back(all);
      netlist.add_output(netlist.add_single({.name = "y" + name,
                                             .block = "requantize",
                                             .parameters = {{"width", 5 + mode},
                                                            {"shift", shift},
                                                            {"mode", mode},
                                                            {"signed", shift % 2},
                                                            {"symmetric", mode % 2}},
                                             .inputs = {x}}));
    }
  const Simulation simulation = Simulator(netlist).run(inputs);
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
}

TEST(Requantize, ScalesByAnyMultiplier) {
  LATHE_NEEDS(verilator);
  Random random(6);
  Netlist netlist("scaled");
  for (int i = 0; i < 16; ++i) {
    const StreamId x = netlist.add_input(
        fmt::format("x{}", i), {.element = draw_element(random, 40), .lanes = 2, .size = 60});
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("y{}", i),
         .block = "requantize",
         .parameters = {{"width", draw(random, 2, 40)},
                        {"shift", draw(random, -6, 40)},
                        {"mode", draw(random, 0, 2)},
                        {"signed", draw(random, 0, 1)},
                        {"symmetric", draw(random, 0, 1)},
                        {"multiplier", draw(random, 1, 1 << draw(random, 0, 20))}},
         .inputs = {x}}));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
