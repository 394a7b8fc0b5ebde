#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lathe/hardware/emission.h"
#include "lathe/hardware/netlist.h"
#include "lathe/hardware/schedule.h"
#include "lathe/hardware/simulation/verilator.h"

namespace lathe::hardware {

struct SimulationOptions {
  /// The share of cycles in which an input offers nothing, and an output takes nothing.
  double stall = 0;
  std::uint64_t seed = 1;
  /// Where waves are written; empty: they are not recorded. The ending chooses .vcd or .fst.
  std::filesystem::path waves = {};
};

/// What happened when a design ran beside its definition.
struct Simulation {
  struct Difference {
    StreamId stream = 0;
    std::int64_t beat = 0, lane = 0, cycle = 0;
    std::int64_t got = 0, expected = 0;
  };
  std::int64_t cycles = 0;  ///< from the first in which an input may offer to the last beat's
  std::vector<Schedule::Beats> streams;  ///< by stream
  std::vector<Values> outputs;           ///< as they came, by output
  std::vector<Values> expected = {};     ///< the same, as `evaluate` says
  std::int64_t num_compared = 0;         ///< elements, on every stream
  std::int64_t num_differences = 0;
  std::vector<Difference> differences;  ///< the first few
  std::vector<std::string> violations;  ///< of the handshake: the first few
  std::vector<StreamId> stuck;          ///< where beats wait when nothing moves any more

  bool is_deadlocked() const { return !stuck.empty(); }
  bool is_exact() const { return num_differences == 0 && violations.empty() && !is_deadlocked(); }
  /// One line for each thing that is wrong.
  std::string text(const Netlist& netlist) const;
};

/// A netlist compiled for simulation, from the cache where the same design was compiled before.
class Simulator {
 public:
  explicit Simulator(const Netlist& netlist, Waves waves = Waves::None);
  /// Runs these files, which may have been changed since they were emitted.
  Simulator(const Netlist& netlist, Emission emission, Waves waves,
            const ShouldStop& should_stop = {});
  /// Runs another description of the same design, such as a synthesized one: `source` is Verilog
  /// text with the emission's top module, `visible` the streams whose nets it still has.
  Simulator(const Netlist& netlist, const std::string& source, const std::vector<bool>& visible,
            const ShouldStop& should_stop = {});

  bool was_cached() const { return was_cached_; }
  const Emission& emission() const { return emission_; }
  const Netlist& netlist() const { return netlist_; }
  /// Feeds whole frames to the design and compares every beat of every stream with `evaluate`.
  Simulation run(const std::vector<Values>& inputs, const SimulationOptions& options = {}) const;

 private:
  void build(const std::string& key, const std::map<std::string, std::string>& files,
             VerilatorDesign design, const ShouldStop& should_stop);

  Netlist netlist_;
  Emission emission_;
  Waves waves_ = Waves::None;
  std::filesystem::path folder_;
  std::vector<StreamId> visible_;  // whose signals the model has, in its order
  bool was_cached_ = false;
};

}  // namespace lathe::hardware
