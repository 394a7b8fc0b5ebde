#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/hardware/mapping/design.h"
#include "lathe/hardware/simulation/simulate.h"

namespace lathe::experiment {

/// What to feed a design with. Without data and inputs: numbers drawn from the inputs' ranges.
struct SimulateOptions {
  std::filesystem::path design = {};
  std::string data = {}, split = "test";
  std::filesystem::path inputs = {};  ///< safetensors, a tensor for each input
  std::int64_t examples = 1;          ///< drawn, or the first of the data
  double stalls = 0;   ///< share of cycles in which an input offers or an output takes nothing
  bool gates = false;  ///< run what Yosys makes of the files instead of them
  bool waves = false;  ///< write waves.vcd or .fst, and of the first a picture, waves.svg
  std::string wave_format = "vcd";
  std::uint64_t seed = 0;
};

/// An output of the design, of all examples.
struct SimulatedOutput {
  std::string name;
  hardware::Stream stream;                 ///< how it came
  hardware::Values got, expected;          ///< by beats; the second of the integer model
  double scale = 1;                        ///< what 1 is worth; of several the first
  std::int64_t quantized_differences = 0;  ///< elements that differ from the quantized model's
  double mean_deviation = 0, largest_deviation = 0;  ///< from the float model, in steps of 1
};

/// What a classifier's design said of examples whose labels are known.
struct SimulatedClasses {
  std::int64_t as_quantized = 0;  ///< examples whose class is that of the quantized model
  std::int64_t right = 0;         ///< examples whose class is the label
};

struct SimulateResult {
  std::int64_t examples = 0;
  hardware::Simulation simulation;
  std::int64_t predicted_cycles = 0;  ///< without stalls
  std::int64_t runs = 1;              ///< from reset on, that the examples were spread over
  double build_seconds = 0, test_seconds = 0;
  bool was_cached = false;
  std::int64_t gates = 0;  ///< cells of the netlist that ran; 0: the files themselves did
  std::vector<SimulatedOutput> outputs = {};
  std::optional<SimulatedClasses> classes = {};
  /// Layers that are the user's own: the model does not say what they compute.
  std::vector<std::string> own_layers = {};
  std::string problems = {};  ///< a line for each; empty: all is exact
  std::filesystem::path waves = {}, picture = {};

  /// Of the clock's 10 ns, the two cycles of reset included.
  double simulated_nanoseconds() const { return 10.0 * static_cast<double>(simulation.cycles + 2); }
  std::int64_t num_wrong() const;
  bool is_exact() const { return problems.empty() && num_wrong() == 0; }
};

/// Runs the files in a design's directory beside the integer model, beat by beat.
SimulateResult simulate(const SimulateOptions& options, const engine::ExecutionOptions& execution,
                        const Callbacks& callbacks = {});

}  // namespace lathe::experiment
