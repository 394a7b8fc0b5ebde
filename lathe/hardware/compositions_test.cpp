#include "lathe/hardware/compositions.h"

#include <gtest/gtest.h>

#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/passes/size_fifos.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/numerics/integer/exponential.h"
#include "lathe/numerics/integer/requant.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(Softmax, IsTheIntegerModels) {
  Random random(30);
  Netlist netlist("softmax");
  const StreamId x =
      netlist.add_input("x", {.element = {.width = 16}, .lanes = 2, .size = 11, .vectors = 5});
  const SoftmaxOptions options{.score_multiplier = 70000,
                               .score_shift = 21,
                               .multiplier = 255,
                               .shift = 0,
                               .element = {.width = 8, .is_signed = false}};
  const StreamId y = add_softmax(netlist, "softmax", x, options);
  netlist.add_output(y);
  const Values scores = draw_values(random, {.width = 16}, 55);
  const Values got = evaluate(netlist, {scores})[y];
  for (std::size_t row = 0; row < 5; ++row) {
    const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(11 * row), end = begin + 11;
    const std::int64_t largest = *std::max_element(begin, end);
    Values e;
    std::int64_t sum = 0;
    for (auto score = begin; score != end; ++score) {
      e.push_back(numerics::exponential(numerics::exponential_steps(largest - *score, 70000, 21)));
      sum += e.back();
    }
    for (std::size_t i = 0; i < 11; ++i)
      EXPECT_EQ(got[11 * row + i],
                std::min<std::int64_t>(
                    255, static_cast<std::int64_t>(numerics::rounded_divide(e[i] * 255, sum))));
  }
}

Netlist layer_norm_design(Random& random, std::int64_t vectors) {
  Netlist netlist("norm");
  const StreamId x =
      netlist.add_input("x", {.element = {.width = 8}, .lanes = 4, .size = 10, .vectors = vectors});
  netlist.add_output(add_layer_norm(
      netlist, "norm", x,
      {.normalization = {.size = 10, .epsilon = 37, .root_fraction = 4, .fraction = 12},
       .factor = draw_values(random, {.width = 12}, 10),
       .summand = draw_values(random, {.width = 24}, 10),
       .shift = 16,
       .element = {.width = 8}}));
  return netlist;
}

TEST(LayerNorm, IsTheIntegerModels) {
  Random random(31);
  const Netlist netlist = layer_norm_design(random, 6);
  const numerics::Normalization normalization{
      .size = 10, .epsilon = 37, .root_fraction = 4, .fraction = 12};
  const BlockCall last = netlist.call(netlist.instances().size() - 1);
  const Values &factor = last.table("factor"), &summand = last.table("summand");
  const Values x = draw_values(random, {.width = 8}, 60);
  const Values got = evaluate(netlist, {x})[netlist.outputs()[0]];
  for (std::size_t row = 0; row < 60; row += 10) {
    const numerics::RowMoments moments =
        numerics::row_moments(std::span(x).subspan(row, 10), normalization);
    for (std::size_t i = 0; i < 10; ++i) {
      const std::int64_t z = numerics::normalized(x[row + i], moments, normalization);
      EXPECT_EQ(got[row + i], numerics::requant(Wide{z} * factor[i] + summand[i], 1, 16,
                                                IntegerRounding::NearestEven, {.width = 8}));
    }
  }
}

TEST(Compositions, SimulateExactlyBesideEachOther) {
  LATHE_NEEDS(verilator);
  Random random(32);
  Netlist netlist = layer_norm_design(random, 4);
  const StreamId x =
      netlist.add_input("scores", {.element = {.width = 14}, .lanes = 2, .size = 9, .vectors = 4});
  netlist.add_output(add_softmax(netlist, "softmax", x,
                                 {.score_multiplier = 70001,
                                  .score_shift = 20,
                                  .multiplier = 255,
                                  .element = {.width = 8, .is_signed = false},
                                  .bits = 2}));
  expect_exact(size_fifos(insert_forks(netlist)).netlist, random);
}

// One head after the other through one unit each for scores and values: the queries wait for the
// last key, which is a FIFO of the whole sequence that nobody had to ask for.
TEST(Compositions, MakeAttention) {
  LATHE_NEEDS(verilator);
  Random random(33);
  constexpr int kTokens = 5, kHeads = 2, kHead = 4, kWidth = kHeads * kHead;
  Netlist netlist("attention");
  const StreamId x = netlist.add_input(
      "x", {.element = {.width = 8}, .lanes = 2, .size = kWidth, .vectors = kTokens});
  const StreamId length =
      netlist.add_input("length", {.element = {.width = 3, .is_signed = false}});
  const auto project = [&](const char* name) {
    return netlist.add_single(
        {.name = name,
         .block = "matrix_vector",
         .parameters = {{"outputs", kWidth}, {"lanes", 2}, {"width", 8}, {"shift", 9}},
         .tables = {{"weight", draw_values(random, {.width = 8}, kWidth * kWidth)}},
         .inputs = {x}});
  };
  const StreamId q = project("query"), k = project("key"), v = project("value");
  const StreamId scores =
      netlist.add_single({.name = "scores",
                          .block = "matrix_product",
                          .parameters = {{"heads", kHeads}, {"lanes", 2}, {"width", 18}},
                          .inputs = {q, k}});
  const StreamId masked = netlist.add_single({.name = "masked",
                                              .block = "length_mask",
                                              .parameters = {{"width", 24}},
                                              .inputs = {scores, length}});
  const ExponentialRows rows = add_exponentials(netlist, "softmax", masked, 100000, 20);
  const StreamId context =
      netlist.add_single({.name = "context",
                          .block = "matrix_product",
                          .parameters = {{"heads", kHeads}, {"turned", 1}, {"width", 30}},
                          .inputs = {convert_lanes(netlist, rows.exponentials, 1), v}});
  netlist.add_output(netlist.add_single({.name = "attention",
                                         .block = "divide",
                                         .parameters = {{"width", 8}},
                                         .inputs = {context, rows.sums}}));

  const SizedNetlist sized = size_fifos(insert_forks(netlist));
  const Simulator simulator(sized.netlist);
  std::vector<Values> inputs = draw_inputs(random, sized.netlist, 3);
  inputs[1] = {5, 3, 1};
  for (const double stall : {0.0, 0.25, 0.5}) {
    const Simulation simulation = simulator.run(inputs, {.stall = stall});
    EXPECT_TRUE(simulation.is_exact()) << simulation.text(sized.netlist);
    if (stall == 0) expect_on_time(sized.netlist, simulation, 3);
  }
}

}  // namespace
}  // namespace lathe::hardware
