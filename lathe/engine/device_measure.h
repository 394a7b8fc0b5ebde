#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/core/thread_pool.h"
#include "lathe/engine/precision.h"

namespace lathe::engine {

struct DeviceMemory {
  std::int64_t free = 0, total = 0;
};

/// How a kernel that works by tiles shares a matrix out: a block of threads for each tile.
struct Tile {
  std::int64_t rows = 0, columns = 0, threads = 0;  ///< 0: as is fastest
  bool operator==(const Tile&) const = default;
};

/// MXINT8 codes to be made floats or, where `to_float` is not set, bfloat16.
struct DequantizeCase {
  std::int64_t rows = 0, columns = 0, group = 32;
  bool to_float = false;
  Tile tile = {};
};

/// x[rows, k] times a packed weight [n, k]. As many copies of the weight are multiplied in turn as
/// no cache holds, so that each is read from memory; by a CPU that is so of up to 64 rows, for more
/// wait for multiplications.
struct PackedLinearCase {
  std::string format;  ///< of the weight; "float": not packed, what a CPU multiplies beside it
  std::int64_t rows = 1, n = 0, k = 0;
  Precision precision = Precision::Float32;  ///< of activations and results
  bool encodes = false;  ///< activations are rounded to the format, products are of whole numbers
};

/// What a device's memory and its kernels for packed weights can do, below graphs: what benches
/// show beside the times of graphs. Every function that times gives seconds of single executions,
/// after some that do not count.
class DeviceMeasure {
 public:
  virtual ~DeviceMeasure() = default;
  virtual std::string description() const = 0;  ///< "NVIDIA H200"
  /// Called between executions; may throw, which ends the timing.
  std::function<void()> between = [] {};
  virtual std::optional<DeviceMemory> memory() const = 0;
  /// Reads and writes so many bytes once each.
  virtual std::vector<double> time_copy(std::int64_t bytes, int repeats) = 0;
  /// The tiles that there are kernels for, the fastest first; none where nothing works by tiles.
  virtual std::vector<Tile> tiles() const = 0;
  /// Codes that a thread copies at once.
  virtual std::int64_t run_of_tile(bool to_float) const = 0;
  virtual std::vector<double> time_dequantize(const DequantizeCase& what, int repeats) = 0;
  /// Fails where the device has no such kernel.
  virtual std::vector<double> time_packed_linear(const PackedLinearCase& what, int repeats) = 0;
};

}  // namespace lathe::engine
