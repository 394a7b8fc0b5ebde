#pragma once

#include <vector>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

/// Copies a netlist part by part, so that a pass can put others between.
class NetlistCopy {
 public:
  /// Begins with the inputs.
  explicit NetlistCopy(const Netlist& original);

  /// Adds a copy of an instance that reads the given streams of the copy.
  void add(std::size_t instance, std::vector<StreamId> inputs);
  /// The copy's stream for one of the original's that was written.
  StreamId copy_of(StreamId original) const { return copies_.at(original); }

  Netlist result;

 private:
  const Netlist& original_;
  std::vector<StreamId> copies_;
};

}  // namespace lathe::hardware
