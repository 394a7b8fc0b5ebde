#pragma once

#include <string>
#include <vector>

#include "lathe/hardware/mapping/parallelism.h"
#include "lathe/hardware/resources.h"
#include "lathe/hardware/stream.h"

namespace lathe::hardware {

/// What a node of an integer graph is in hardware.
struct HardwareMetadata {
  static constexpr const char* kAnnotation = "hardware";

  /// "internal": a module of rtl/; "external": the user's own.
  std::string toolchain = "internal";
  std::vector<std::string> modules = {};          ///< in the order in which data passes
  std::vector<std::string> files = {};            ///< that they depend on
  std::vector<Stream> inputs = {}, outputs = {};  ///< precision, sizes and parallelism
  /// Where parameters live: "block RAM: weight 8 x 128 bits". Empty: there are none.
  std::vector<std::string> memories = {};
  /// Weights stand in memory as the graph has them, output by output, cut into tiles; never
  /// transposed.
  bool is_transposed = false;
  std::string interface = "valid/ready streams";
  std::int64_t cycles = 0;  ///< of a frame, in the slowest of its blocks
  Resources resources = {};
};

/// On one line.
std::string to_text(const HardwareMetadata& metadata);

}  // namespace lathe::hardware
