#pragma once

#include "lathe/engine/device_measure.h"
#include "lathe/experiment/bench/time_graph.h"

namespace lathe::experiment::bench {

/// MXINT8: decoding by tiles against a copy of as many bytes, and products with packed weights.
struct Mxint8Options {
  std::int64_t rows = 0, columns = 0;  ///< of the matrix to decode; 0: as suits the device
  std::int64_t group = 32;             ///< numbers that share an exponent
  /// Tiles to time: of these rows and columns and so many threads; 0: any.
  engine::Tile tile = {};
  std::int64_t threads = 0;
  bool to_float = false;   ///< instead of bfloat16
  bool multiplies = true;  ///< times products with packed weights, too
  /// Of square weights, and rows that are multiplied with them; empty: as suits the device.
  std::vector<std::int64_t> sizes = {}, batches = {};
  std::vector<std::string> formats = {"mxint:8"};  ///< of packed weights
  Repeats repeats = {};
};
Result time_mxint8(const Mxint8Options& options, const engine::ExecutionOptions& execution,
                   const Callbacks& callbacks = {});

/// Reads "ROWSxCOLUMNS".
engine::Tile parse_tile(const std::string& text);

/// Which thread copies what of a tile, as text: a cell for each run of codes, with the number of
/// its thread; a tile that is too large for a screen is cut off.
std::string tile_text(const engine::Tile& tile, std::int64_t run);
/// The same as a picture; a colour for each turn of the threads.
std::string tile_svg(const engine::Tile& tile, std::int64_t run);

}  // namespace lathe::experiment::bench
