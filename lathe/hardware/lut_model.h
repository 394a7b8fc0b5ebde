#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

/// How many LUTs of a Xilinx 7 device Yosys makes of a block, about: the parts that it is made of,
/// counted from its parameters and the contents of its memories, each with a weight. `bench_luts`
/// fits the weights to synthesized examples. One for each block that has one.
struct LutModel {
  std::string name;  ///< of the block
  std::vector<double> weights;
  std::function<std::vector<double>(const BlockCall&)> parts;

  double luts(const BlockCall& call) const;
};

/// LUTs of a width converter for vectors of `size` elements; 0 where the lanes are the same.
double converter_luts(std::int64_t size, std::int64_t from, std::int64_t to, int width);

/// LUTs of a memory that is only read, told to be logic: the functions of the address that its bits
/// are, each counted once.
double read_only_luts(const MemoryImage& image);

/// How many bits of an element of each stream ever change: all of them, but for those that stay the
/// same behind a ReLU, a shift to the left or a table. Yosys removes the others.
std::vector<int> changing_bits(const Netlist& netlist);

/// The call as its model sees it inside a design: blocks that only move elements keep but the bits
/// that change.
BlockCall narrowed(const BlockCall& call, const std::vector<int>& changing_bits);

/// What an instance takes: multipliers and block RAM as the block counts them, LUTs by its model,
/// or by the bits of its streams where it has none.
Resources resources_of(const BlockCall& call);
/// The same inside a design.
Resources resources_of(const BlockCall& call, const std::vector<int>& changing_bits);

}  // namespace lathe::hardware
