#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lathe/hardware/block.h"

namespace lathe::hardware {

/// How many LUTs of a Xilinx 7 device Yosys makes of a block, about: parts counted from its
/// parameters, with weights fitted to synthesized examples. One for each block that has one.
struct LutModel {
  std::string name;  ///< of the block
  std::function<double(const BlockCall&)> luts;
};

/// LUTs of a width converter for vectors of `size` elements; 0 where the lanes are the same.
double converter_luts(std::int64_t size, std::int64_t from, std::int64_t to, int width);

/// What an instance takes: multipliers and block RAM as the block counts them, LUTs by its model,
/// or by the bits of its streams where it has none.
Resources resources_of(const BlockCall& call);

}  // namespace lathe::hardware
