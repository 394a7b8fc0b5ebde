#include <gtest/gtest.h>

#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

Values outputs(Instance instance, Values inputs, int lanes = 1) {
  Netlist netlist("activation");
  const auto size = static_cast<std::int64_t>(inputs.size());
  instance.inputs = {
      netlist.add_input("x", {.element = {.width = 8}, .lanes = lanes, .size = size})};
  netlist.add_output(netlist.add_single(std::move(instance)));
  return evaluate(netlist, {std::move(inputs)}).back();
}

TEST(LeakyRelu, Floors) {
  EXPECT_EQ(
      outputs({.name = "y", .block = "leaky_relu", .parameters = {{"slope", 17}, {"shift", 6}}},
              {-1, -8, 5, -128}),
      (Values{-1, -3, 5, -34}));
}

// The register begins with its seed: 1, 2, 4, 8, 17 (the taps' parity comes in), 35. Slopes
// 8 + floor(13 r / 16) of its low four bits: 8, 9, 11, 14, 8, 10.
TEST(RandomLeakyRelu, DrawsASlopeForEveryBeat) {
  const Instance instance{.name = "y", .block = "random_leaky_relu"};
  EXPECT_EQ(outputs(instance, {-64, -64, -64, -64, -64, -64}), (Values{-8, -9, -11, -14, -8, -10}));
  EXPECT_EQ(outputs(instance, {-64, -64, -64, -64, -64, -64}, 2),
            (Values{-8, -8, -9, -9, -11, -11}));
}

TEST(TableFunction, ReadsTheTableFromTheLowestInputOn) {
  Instance instance{.name = "y", .block = "table_function", .parameters = {{"width", 10}}};
  for (int x = -128; x < 128; ++x) instance.tables["table"].push_back(3 * x);
  EXPECT_EQ(outputs(instance, {-128, -1, 0, 127}), (Values{-384, -3, 0, 381}));
}

TEST(Activations, EqualTheirDefinitions) {
  LATHE_NEEDS(verilator);
  Random random(7);
  Netlist netlist("activations");
  for (int i = 0; i < 20; ++i) {
    Stream type{.element = {.width = static_cast<int>(draw(random, 2, 14))},
                .lanes = static_cast<int>(draw(random, 1, 5)),
                .size = draw(random, 1, 12),
                .vectors = draw(random, 4, 12)};
    Instance instance{.name = fmt::format("y{}", i), .block = ""};
    switch (i % 4) {
      case 0:
        instance.block = "relu";
        break;
      case 1:
        instance.block = "leaky_relu";
        instance.parameters = {{"slope", draw(random, 0, 70)}, {"shift", draw(random, 0, 7)}};
        break;
      case 2:
        instance.block = "random_leaky_relu";
        instance.parameters = {{"seed", draw(random, 1, 255)}, {"taps", draw(random, 1, 255)}};
        break;
      default:
        // With 14 bits by 3 the table is in block RAM.
        type.element = {.width = i == 3 ? 14 : static_cast<int>(draw(random, 2, 8)),
                        .is_signed = draw(random, 0, 1) != 0};
        const Element to = draw_element(random, 9);
        instance.block = "table_function";
        instance.parameters = {{"width", to.width}, {"signed", to.is_signed ? 1 : 0}};
        instance.tables["table"] = draw_values(random, to, std::int64_t{1} << type.element.width);
    }
    instance.inputs = {netlist.add_input(fmt::format("x{}", i), type)};
    netlist.add_output(netlist.add_single(instance));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
