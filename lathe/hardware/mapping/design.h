#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/hardware/mapping/hardware_metadata.h"
#include "lathe/hardware/mapping/solve_folding.h"
#include "lathe/hardware/netlist.h"
#include "lathe/hardware/passes/size_fifos.h"

/// From an integer graph to a design that can be printed.
namespace lathe::hardware {

struct DesignOptions {
  std::string name = "top";
  FoldingGoal goal = {};
  /// Where there is no goal: of these, ascending, the first that has room for the design.
  std::vector<Device> devices = {};
  Parallelism parallelism = {};  ///< of layers whose lanes are not to be chosen
  SymbolValues symbols = {};     ///< of sizes such as L; B is one example
  std::vector<ExternalLayer> external = {};
};

struct Design {
  Netlist netlist;
  std::vector<DesignPort> inputs = {}, outputs = {};
  Parallelism parallelism = {};  ///< of every layer
  std::vector<FifoChoice> fifos = {};
  std::map<std::string, HardwareMetadata, std::less<>> layers = {};  ///< by node
  Resources resources = {};
  std::string device = {};          ///< that lanes were chosen for, of several
  std::int64_t frame_interval = 0;  ///< cycles from one example to the next
  std::vector<ExternalLayer> external = {};
  SymbolValues symbols = {};
  double switching = 0;      ///< of `switching_bits`: a proxy of power
  std::int64_t latency = 0;  ///< cycles from an example's first beat in to its last out
};

/// Chooses lanes, maps every node to blocks, adds forks and FIFOs. Fails in one line that names
/// every node that has no hardware.
Design design_hardware(const Graph& integer_graph, const State& state,
                       const DesignOptions& options);

/// A tensor of one example as the elements of a frame, and back.
Values to_frame(const DesignPort& port, const std::vector<std::int64_t>& elements);
std::vector<std::int64_t> from_frame(const DesignPort& port, const Values& frame);

}  // namespace lathe::hardware
