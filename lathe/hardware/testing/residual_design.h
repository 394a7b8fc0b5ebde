#pragma once

#include <string>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware::testing {

/// A layer of small weights that can be written down: (7 i + 3) mod 23 - 11.
inline Instance linear(const std::string& name, const Netlist& netlist, StreamId x,
                       std::int64_t outputs, std::int64_t lanes) {
  Values weight;
  for (std::int64_t i = 0; i < outputs * netlist.type(x).size; ++i)
    weight.push_back((i * 7 + 3) % 23 - 11);
  return {.name = name,
          .block = "matrix_vector",
          .parameters = {{"outputs", outputs}, {"lanes", lanes}, {"width", 8}, {"shift", 7}},
          .tables = {{"weight", weight}},
          .inputs = {x}};
}

/// x + fc(x), without forks and FIFOs yet.
inline Netlist residual_design(std::int64_t size, int lanes, std::int64_t vectors) {
  Netlist netlist("residual");
  const StreamId x = netlist.add_input("x", {.lanes = lanes, .size = size, .vectors = vectors});
  const StreamId fc = netlist.add_single(linear("fc", netlist, x, size, lanes));
  netlist.add_output(netlist.add_single(
      {.name = "sum", .block = "element_wise", .parameters = {{"width", 9}}, .inputs = {fc, x}}));
  return netlist;
}

}  // namespace lathe::hardware::testing
