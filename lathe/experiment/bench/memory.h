#pragma once

#include "lathe/experiment/bench/time_graph.h"

namespace lathe::experiment::bench {

/// An encoder of random weights as floats, with packed linears, and with packed tables as well.
struct MemoryOptions {
  std::int64_t layers = 48, hidden = 1024, intermediate = 4096, heads = 16, vocabulary = 50265;
  std::string format = "mxint:8";
  std::uint64_t seed = 0;
};

/// What one form of the encoder takes.
struct MemoryRow {
  std::string name;
  std::int64_t state_bytes = 0;   ///< of the graph's states
  double saved = 0;               ///< share of the floats'
  std::int64_t device_bytes = 0;  ///< the device's memory that is gone once a text has been read
  std::int64_t arena_bytes = 0;   ///< of those: activations and the weight that is decoded
};
struct MemoryResult {
  std::string title, device;
  std::int64_t parameters = 0;
  std::vector<MemoryRow> rows;
};
MemoryResult measure_memory(const MemoryOptions& options, const engine::ExecutionOptions& execution,
                            const Callbacks& callbacks = {});

report::Table to_table(const MemoryResult& result);
nlohmann::ordered_json to_json(const MemoryResult& result);

}  // namespace lathe::experiment::bench
