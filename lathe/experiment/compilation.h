#pragma once

#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/engine/fusion_notes.h"
#include "lathe/experiment/callbacks.h"

namespace lathe::experiment {

/// Compiles a model for one device and batch, to see what became of it.
struct CompilationOptions {
  std::string model = {}, task = {};
  std::int64_t rows = 8;     ///< of the batch: B or S
  std::int64_t length = 0;   ///< of a row: L, or a share of T; 0: 128, or the model's most
  bool is_training = false;  ///< a step of training instead of the model alone
  bool simulates = false;    ///< what is packed is multiplied as floats
  bool is_measured = false;
  int rounds = 5;  ///< timed
  std::uint64_t seed = 0;
};

/// One kernel call of the plan.
struct CompiledKernel {
  std::string kernel, name, layout, stage_reason;
  std::string choice_reason = {};    ///< why this one of several kernels
  std::vector<std::string> origins;  ///< nodes of the model's graph
  int stage = 0;
  double flops = 0, bytes = 0;
  double seconds = 0;  ///< of all threads together, measured
};

/// What is compiled: a model's graph, or a step of its training, with a batch made up for it.
struct Compilable {
  Graph graph;
  State state;
  SymbolValues sizes;
  Feed feed;
};
/// Fails where a length or simulation is asked for and the model has nothing of the kind, or a
/// fixed length that is another.
Compilable load_for_compilation(const CompilationOptions& options);

/// A size at these extents; 0 where it counts by a symbol that a batch has none of, such as the
/// lengths of packed attention.
double value_of(const Size& size, const SymbolValues& sizes);

struct Compilation {
  std::size_t nodes = 0;    ///< of the model's graph, states and inputs not counted
  double node_bytes = 0;    ///< what they would read and write one by one
  double seconds = 0;       ///< to lower, plan and lay weights out
  double plan_seconds = 0;  ///< without the weights; 0 where the backend plans nothing
  double run_seconds = 0;   ///< the least of a run, measured
  int threads = 1;
  std::int64_t arena_bytes = 0, unshared_bytes = 0;
  std::vector<CompiledKernel> kernels;
  std::vector<engine::FusionNote> unfused;
  double peak_flops = 0, bandwidth = 0;  ///< of all threads, a second, measured

  double kernel_bytes() const;
  /// The share of what arithmetic and memory allow that a kernel reaches; 0 where it is not known.
  double share_of_roofline(const CompiledKernel& kernel) const;
};

Compilation compile(const CompilationOptions& options, const engine::ExecutionOptions& execution,
                    const Callbacks& callbacks = {});

}  // namespace lathe::experiment
