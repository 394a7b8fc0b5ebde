#pragma once

#include <string>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware::testing {

/// Linear(4,8) and an activation in fixed:8,3, four inputs and four of eight outputs a cycle.
inline Netlist lab_design(const std::string& activation = "relu") {
  Values weight, bias;
  for (int i = 0; i < 32; ++i) weight.push_back((i * 7 + 3) % 23 - 11);
  for (int i = 0; i < 8; ++i) bias.push_back(40 * i - 130);
  Netlist netlist("lab");
  const StreamId x = netlist.add_input(
      "x", {.element = {.width = 8, .meaning = "fixed:8,3"}, .lanes = 4, .size = 4});
  const StreamId fc1 =
      netlist.add_single({.name = "fc1",
                          .block = "matrix_vector",
                          .parameters = {{"outputs", 8}, {"lanes", 4}, {"width", 8}, {"shift", 3}},
                          .tables = {{"weight", weight}, {"bias", bias}},
                          .inputs = {x}});
  netlist.set_meaning(fc1, "fixed:8,3");
  Instance act{.name = "act1", .block = activation, .inputs = {fc1}};
  if (activation == "leaky_relu") act.parameters = {{"slope", 1}, {"shift", 3}};
  netlist.add_output(netlist.add_single(act));
  return netlist;
}

}  // namespace lathe::hardware::testing
