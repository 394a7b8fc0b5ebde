#pragma once

#include <map>
#include <string>

#include "lathe/hardware/compositions.h"
#include "lathe/hardware/netlist.h"
#include "lathe/hardware/testing/expect_exact.h"

namespace lathe::hardware::testing {

/// One small instance of every block, those that need others behind them. No forks and FIFOs yet.
inline Netlist every_block_design() {
  Random random(50);
  Netlist netlist("everything");
  const Stream rows{.element = {.width = 6}, .lanes = 2, .size = 5, .vectors = 6};
  const StreamId x = netlist.add_input("x", rows);
  const auto add = [&](const std::string& block, std::vector<StreamId> inputs,
                       std::map<std::string, std::int64_t, std::less<>> parameters = {},
                       std::map<std::string, Values, std::less<>> tables = {}) {
    return netlist.add_single({.name = "the_" + block,
                               .block = block,
                               .parameters = std::move(parameters),
                               .tables = std::move(tables),
                               .inputs = std::move(inputs)});
  };
  const auto values = [&](int width, std::int64_t count) {
    return draw_values(random, {.width = width}, count);
  };
  const StreamId slice = add("skid_buffer", {x});
  const StreamId layer =
      add("matrix_vector", {slice}, {{"outputs", 4}, {"lanes", 3}, {"width", 6}, {"shift", 4}},
          {{"weight", values(4, 20)}, {"bias", values(6, 4)}});
  netlist.add_output(add("relu", {layer}));
  netlist.add_output(add("leaky_relu", {layer}, {{"slope", 3}, {"shift", 3}}));
  netlist.add_output(add("random_leaky_relu", {layer}));
  netlist.add_output(add("table_function", {layer}, {{"width", 5}}, {{"table", values(5, 64)}}));
  netlist.add_output(add("requantize", {layer}, {{"width", 4}, {"multiplier", 5}, {"shift", 3}}));
  netlist.add_output(add("element_wise", {layer, layer}, {{"op", 2}, {"width", 8}, {"shift", 2}}));
  const StreamId converted = add("width_converter", {x}, {{"lanes", 5}});
  netlist.add_output(add("stream_join", {converted, converted}));
  const StreamId windows = add(
      "sliding_window", {converted},
      {{"height", 3}, {"columns", 2}, {"kernel_h", 2}, {"kernel_w", 2}, {"top", 1}, {"right", 1}});
  netlist.add_output(add("window_reduce", {windows}, {{"count", 4}, {"width", 7}, {"shift", 1}}));
  netlist.add_output(add("reorder_buffer", {converted},
                         {{"count1", 2}, {"count2", 3}, {"stride1", 1}, {"stride2", 2}}));
  netlist.add_output(add("vector_select", {converted}, {{"index", 1}}));
  const StreamId length =
      netlist.add_input("length", {.element = {.width = 3, .is_signed = false}});
  const StreamId scores = add("matrix_product", {x, x}, {{"lanes", 2}, {"width", 12}});
  const StreamId masked = add("length_mask", {scores, length}, {{"width", 15}});
  netlist.add_output(add_softmax(netlist, "softmax", masked,
                                 {.score_multiplier = 5000,
                                  .score_shift = 12,
                                  .multiplier = 63,
                                  .element = {.width = 6, .is_signed = false}}));
  netlist.add_output(
      add_layer_norm(netlist, "norm", x,
                     {.normalization = {.size = 5, .epsilon = 3, .root_fraction = 2, .fraction = 6},
                      .factor = values(6, 5),
                      .summand = values(9, 5),
                      .shift = 7,
                      .element = {.width = 6}}));
  const StreamId tokens =
      netlist.add_input("tokens", {.element = {.width = 3, .is_signed = false}, .vectors = 2});
  netlist.add_output(add("embedding", {tokens},
                         {{"rows", 8}, {"size", 3}, {"lanes", 2}, {"width", 5}},
                         {{"table", values(5, 24)}}));
  return netlist;
}

}  // namespace lathe::hardware::testing
