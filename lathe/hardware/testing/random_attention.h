#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lathe/hardware/netlist.h"
#include "lathe/hardware/testing/expect_exact.h"

namespace lathe::hardware::testing {

/// Draws one of each block that attention, layer norm and embeddings are made of, side by side,
/// with inputs and outputs of their own.
inline Netlist random_attention(std::uint64_t seed) {
  Random random(seed);
  Netlist netlist("attention");
  int count = 0;
  using Parameters = std::map<std::string, std::int64_t, std::less<>>;
  const auto input = [&](const Stream& type) {
    return netlist.add_input("x" + std::to_string(++count), type);
  };
  const auto add = [&](const char* block, std::vector<StreamId> inputs, Parameters parameters,
                       std::map<std::string, Values, std::less<>> tables = {}) {
    netlist.add_output(netlist.add_single({.name = "y" + std::to_string(++count),
                                           .block = block,
                                           .parameters = std::move(parameters),
                                           .tables = std::move(tables),
                                           .inputs = std::move(inputs)}));
  };
  const auto any = [&](std::int64_t low, std::int64_t high) { return draw(random, low, high); };
  const auto width = [&](std::int64_t low, std::int64_t high) {
    return static_cast<int>(any(low, high));
  };
  const std::int64_t heads = any(1, 2), tokens = any(3, 24), head = 4 * any(1, 4);
  const std::int64_t vectors = tokens * heads;
  constexpr int kLanes[] = {1, 2, 4};
  const int lanes = kLanes[any(0, 2)], out_lanes = width(1, 4);

  // Scores and contexts.
  const Element activation{.width = width(4, 9)};
  const Stream rows{.element = activation, .lanes = lanes, .size = head * heads, .vectors = tokens};
  const std::int64_t score_shift = any(0, 1) * any(1, 8);
  add("matrix_product", {input(rows), input(rows)},
      {{"heads", heads},
       {"lanes", out_lanes},
       {"shift", score_shift},
       {"width", score_shift == 0 ? 2 * activation.width + 5 : any(8, 16)}});
  const Element exponential{.width = 15, .is_signed = false};
  add("matrix_product",
      {input({.element = exponential, .lanes = 1, .size = tokens, .vectors = vectors}),
       input(rows)},
      {{"heads", heads}, {"turned", 1}, {"width", any(16, 30)}});

  // Softmax.
  const Stream scores{
      .element = {.width = width(8, 24)}, .lanes = out_lanes, .size = tokens, .vectors = vectors};
  const auto one_a_row = [&](const Stream& of, const Element& element) -> Stream {
    return {.element = element, .lanes = 1, .size = 1, .vectors = of.vectors};
  };
  add("length_mask",
      {input(scores), input({.element = {.width = width(3, 6), .is_signed = false}})},
      {{"width", scores.element.width + any(1, 3)}});
  add("row_reduce", {input(scores)}, {{"op", any(2, 3)}});
  add("exponential", {input(scores), input(one_a_row(scores, scores.element))},
      {{"multiplier", any(1, 1 << width(4, 16))}, {"shift", any(4, 18)}});
  add("row_reduce",
      {input({.element = exponential, .lanes = out_lanes, .size = tokens, .vectors = vectors})},
      {{"op", 0}});
  const Stream dividends{.element = {.width = width(12, 30), .is_signed = any(0, 1) != 0},
                         .lanes = lanes,
                         .size = head,
                         .vectors = vectors};
  add("divide",
      {input(dividends), input(one_a_row(dividends, {.width = width(12, 26), .is_signed = false}))},
      {{"multiplier", any(0, 1) == 0 ? 1 : any(1, 300)},
       {"shift", any(-12, 6)},
       {"width", any(4, 22)},
       {"signed", any(0, 1)},
       {"bits", any(0, 3) == 0 ? any(2, 3) : 1}});

  // Layer norm.
  const Stream residual{
      .element = {.width = width(6, 16)}, .lanes = lanes, .size = head * heads, .vectors = tokens};
  add("row_reduce", {input(residual)}, {{"op", 0}});
  add("row_reduce", {input(residual)}, {{"op", 1}});
  const int sum = residual.element.width + width(3, 7);
  add("element_wise", {input(residual), input(one_a_row(residual, {.width = sum}))},
      {{"op", 1}, {"multiplier_a", residual.size}, {"per_row", 1}, {"width", sum + 2}});
  add("row_root",
      {input(one_a_row(residual, {.width = sum})),
       input(one_a_row(residual,
                       {.width = 2 * residual.element.width + width(0, 6), .is_signed = false}))},
      {{"size", residual.size}, {"epsilon", any(0, 300)}, {"fraction", any(0, 6)}});
  const Stream normalized{
      .element = {.width = width(8, 22)}, .lanes = lanes, .size = residual.size, .vectors = tokens};
  const std::int64_t scale_shift = any(2, 14);
  const std::int64_t positions = any(0, 2) == 0 ? tokens : 1;
  add("channel_scale", {input(normalized)},
      {{"rows", positions}, {"shift", scale_shift}, {"width", any(6, 16)}},
      {{"factor", draw_values(random, {.width = width(4, 12)}, positions * residual.size)},
       {"summand", draw_values(random, {.width = width(6, 20)}, positions * residual.size)}});

  // Around them.
  add("requantize", {input({.element = {.width = width(10, 30)}, .lanes = lanes, .size = head})},
      {{"multiplier", any(0, 1) == 0 ? 1 : any(2, 5000)},
       {"shift", any(1, 18)},
       {"width", any(4, 12)}});
  add("row_reduce",
      {input({.element = {.width = width(4, 20)}, .lanes = out_lanes, .size = any(2, 12)})},
      {{"op", 4}});
  add("vector_select", {input(rows)}, {{"index", any(0, tokens - 1)}});
  add("reorder_buffer",
      {input({.element = activation, .lanes = lanes, .size = lanes * 4, .vectors = tokens})},
      {{"count1", 4}, {"count2", tokens}, {"stride1", 1}, {"stride2", 4}});
  const std::int64_t words = any(4, 40);
  add("embedding",
      {input(
          {.element = {.width = 6, .is_signed = false}, .lanes = 1, .size = 1, .vectors = tokens})},
      {{"rows", words}, {"size", head}, {"lanes", lanes}, {"width", activation.width}},
      {{"table", draw_values(random, activation, words * head)}});
  const int narrow = width(3, 10);
  add("random_leaky_relu", {input({.element = {.width = narrow}, .lanes = lanes, .size = 8})}, {});
  add("leaky_relu", {input({.element = {.width = narrow}, .lanes = lanes, .size = 8})},
      {{"slope", any(1, 9)}, {"shift", 3}});
  add("skid_buffer", {input(residual)}, {});
  add("stream_join", {input(residual), input(residual)}, {});
  add("stream_fifo", {input(residual)}, {{"depth", any(1, 3) == 1 ? any(1, 200) : any(1, 30)}});
  return netlist;
}

}  // namespace lathe::hardware::testing
