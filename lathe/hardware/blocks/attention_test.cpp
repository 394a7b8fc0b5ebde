// The blocks of attention and layer norm, each with what it needs in front of it.
#include <gtest/gtest.h>

#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/passes/size_fifos.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

Stream draw_rows(Random& random, const Element& element) {
  return {.element = element,
          .lanes = static_cast<int>(draw(random, 1, 4)),
          .size = draw(random, 1, 9),
          .vectors = draw(random, 1, 5)};
}

TEST(Exponential, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(15);
  Netlist netlist("powers");
  for (int i = 0; i < 6; ++i) {
    const StreamId x =
        netlist.add_input(fmt::format("x{}", i), draw_rows(random, draw_element(random, 18)));
    const StreamId largest = netlist.add_single({.name = fmt::format("m{}", i),
                                                 .block = "row_reduce",
                                                 .parameters = {{"op", 2}},
                                                 .inputs = {x}});
    netlist.add_output(
        netlist.add_single({.name = fmt::format("y{}", i),
                            .block = "exponential",
                            .parameters = {{"multiplier", draw(random, 1, (1 << 17) - 1)},
                                           {"shift", draw(random, 1, 26)}},
                            .inputs = {x, largest}}));
  }
  expect_exact(size_fifos(insert_forks(netlist)).netlist, random);
}

TEST(Divide, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(16);
  Netlist netlist("quotients");
  std::vector<Values> inputs;
  for (int i = 0; i < 14; ++i) {
    const Stream x = draw_rows(random, draw_element(random, 24));
    const Element divisor{.width = static_cast<int>(draw(random, 1, 20)), .is_signed = false};
    const StreamId a = netlist.add_input(fmt::format("x{}", i), x);
    const StreamId b =
        netlist.add_input(fmt::format("d{}", i), {.element = divisor, .vectors = x.vectors});
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("y{}", i),
         .block = "divide",
         .parameters = {{"width", draw(random, 2, 14)},
                        {"signed", draw(random, 0, 1)},
                        {"symmetric", draw(random, 0, 1)},
                        {"bits", draw(random, 1, 3)},
                        {"multiplier", draw(random, 1, 1 << draw(random, 0, 16))},
                        {"shift", draw(random, -14, 14)}},
         .inputs = {a, b}}));
  }
  const std::int64_t frames = 12;
  inputs = draw_inputs(random, netlist, frames);
  for (std::size_t i = 1; i < inputs.size(); i += 2)
    for (std::int64_t& divisor : inputs[i]) divisor = std::max<std::int64_t>(1, divisor);
  const Simulator simulator(netlist);
  for (const double stall : {0.0, 0.5}) {
    const Simulation simulation = simulator.run(inputs, {.stall = stall});
    EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
    if (stall == 0) expect_on_time(netlist, simulation, frames);
  }
}

TEST(RowRoot, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(17);
  Netlist netlist("roots");
  for (int i = 0; i < 6; ++i) {
    const StreamId x =
        netlist.add_input(fmt::format("x{}", i), draw_rows(random, draw_element(random, 10)));
    const StreamId sum = netlist.add_single({.name = fmt::format("s{}", i),
                                             .block = "row_reduce",
                                             .parameters = {{"op", 0}},
                                             .inputs = {x}});
    const StreamId squares = netlist.add_single({.name = fmt::format("q{}", i),
                                                 .block = "row_reduce",
                                                 .parameters = {{"op", 1}},
                                                 .inputs = {x}});
    netlist.add_output(netlist.add_single({.name = fmt::format("y{}", i),
                                           .block = "row_root",
                                           .parameters = {{"size", netlist.type(x).size},
                                                          {"epsilon", i == 0 ? 6000000000 : i},
                                                          {"fraction", i % 3}},
                                           .inputs = {sum, squares}}));
  }
  expect_exact(size_fifos(insert_forks(netlist)).netlist, random);
}

TEST(ChannelScale, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(18);
  Netlist netlist("scales");
  for (int i = 0; i < 8; ++i) {
    const Stream type = draw_rows(random, draw_element(random, 14));
    const std::int64_t rows = i % 2 == 0 ? 1 : type.vectors;
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("y{}", i),
         .block = "channel_scale",
         .parameters = {{"rows", rows},
                        {"width", draw(random, 2, 12)},
                        {"shift", draw(random, 0, 16)}},
         .tables = {{"factor", draw_values(random, {.width = 12}, rows * type.size)},
                    {"summand", draw_values(random, {.width = 20}, rows * type.size)}},
         .inputs = {netlist.add_input(fmt::format("x{}", i), type)}}));
  }
  expect_exact(netlist, random);
}

TEST(ReorderBuffer, TransposesAndReplays) {
  LATHE_NEEDS(verilator);
  Random random(19);
  Netlist netlist("orders");
  for (int i = 0; i < 6; ++i) {
    const int lanes = static_cast<int>(draw(random, 1, 3));
    const std::int64_t rows = draw(random, 1, 5), beats = draw(random, 1, 5);
    const StreamId x = netlist.add_input(fmt::format("x{}", i), {.element = draw_element(random, 9),
                                                                 .lanes = lanes,
                                                                 .size = beats * lanes,
                                                                 .vectors = rows});
    netlist.add_output(netlist.add_single({.name = fmt::format("y{}", i),
                                           .block = "reorder_buffer",
                                           .parameters = {{"count0", draw(random, 1, 3)},
                                                          {"count1", beats},
                                                          {"count2", rows},
                                                          {"stride1", 1},
                                                          {"stride2", beats}},
                                           .inputs = {x}}));
  }
  expect_exact(netlist, random);
}

TEST(MatrixProduct, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(20);
  Netlist netlist("products");
  for (int i = 0; i < 10; ++i) {
    const std::int64_t heads = draw(random, 1, 3), rows = draw(random, 1, 4),
                       keys = draw(random, 1, 6);
    const int lanes = static_cast<int>(draw(random, 1, 3));
    const std::int64_t head = heads == 1 ? draw(random, 1, 7) : lanes * draw(random, 1, 3);
    const bool is_turned = i % 2 == 1;
    const Stream a = is_turned ? Stream{.lanes = 1, .size = keys, .vectors = rows * heads}
                               : Stream{.lanes = lanes, .size = heads * head, .vectors = rows};
    const Stream b{.lanes = lanes, .size = heads * head, .vectors = keys};
    const auto with = [&](Stream type) {
      type.element = draw_element(random, 9);
      return type;
    };
    netlist.add_output(
        netlist.add_single({.name = fmt::format("y{}", i),
                            .block = "matrix_product",
                            .parameters = {{"heads", heads},
                                           {"turned", is_turned ? 1 : 0},
                                           {"lanes", is_turned ? 1 : draw(random, 1, 4)},
                                           {"width", draw(random, 2, 20)},
                                           {"shift", draw(random, 0, 8)}},
                            .inputs = {netlist.add_input(fmt::format("a{}", i), with(a)),
                                       netlist.add_input(fmt::format("b{}", i), with(b))}}));
  }
  expect_exact(netlist, random, 4);
}

TEST(Embedding, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(21);
  Netlist netlist("tokens");
  for (int i = 0; i < 4; ++i) {
    const Element token{.width = static_cast<int>(draw(random, 1, 6)), .is_signed = false};
    const Element element = draw_element(random, 9);
    const std::int64_t rows = token.highest() + 1, size = draw(random, 1, 9);
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("y{}", i),
         .block = "embedding",
         .parameters = {{"rows", rows},
                        {"size", size},
                        {"lanes", draw(random, 1, 4)},
                        {"width", element.width},
                        {"signed", element.is_signed ? 1 : 0}},
         .tables = {{"table", draw_values(random, element, rows * size)}},
         .inputs = {netlist.add_input(fmt::format("x{}", i), {.element = token, .vectors = 9})}}));
  }
  expect_exact(netlist, random);
}

TEST(LengthMask, EqualsItsDefinition) {
  LATHE_NEEDS(verilator);
  Random random(22);
  Netlist netlist("masks");
  for (int i = 0; i < 6; ++i) {
    const Stream scores = draw_rows(random, draw_element(random, 9));
    const Element length{.width = static_cast<int>(draw(random, 1, 5)), .is_signed = false};
    netlist.add_output(netlist.add_single(
        {.name = fmt::format("y{}", i),
         .block = "length_mask",
         .parameters = {{"width", scores.element.width + 2}},
         .inputs = {netlist.add_input(fmt::format("x{}", i), scores),
                    netlist.add_input(fmt::format("n{}", i), {.element = length})}}));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
