#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lathe/engine/executor.h"

namespace lathe::experiment {

/// What a model's weights take, by definition and in memory.
struct WeightMemory {
  std::int64_t float_bytes = 0;   ///< if each were a float
  std::int64_t stored_bytes = 0;  ///< as the model stores them
  /// In memory once the model can run: the layouts that products read, and whatever is read as it
  /// is stored.
  std::int64_t held_bytes = 0;
  /// By how much the process has grown until then, as the system counts it.
  std::int64_t resident_bytes = 0;

  bool operator==(const WeightMemory&) const = default;
};

/// Loads a model and gets it ready to run. Nothing where the device keeps weights itself.
std::optional<WeightMemory> measure_weight_memory(const std::string& model, const std::string& task,
                                                  const engine::ExecutionOptions& execution);

/// "346.7 MB held where floats take 1340.6 MB (74.1 % less; stored 345.6 MB, 74.2 %), the process
/// grew by 350.0 MB".
std::string to_text(const WeightMemory& memory);

/// The bytes of floats from which on the figures say something: the program itself takes some.
inline constexpr std::int64_t kLeastMeasured = 64'000'000;

}  // namespace lathe::experiment
