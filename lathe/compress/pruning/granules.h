#pragma once

#include <string>
#include <vector>

#include "lathe/compress/pruning/granularity.h"
#include "lathe/compress/pruning/prunable_weights.h"

namespace lathe::compress {

/// A region of a parameter's matrix, cut into tiles. The tiles of row after row are the granules
/// 0, 1, 2, ...; those at the edges may be smaller.
struct GranulePart {
  std::string state;
  std::int64_t matrix_rows = 0, matrix_columns = 0, axis = -1;  ///< as in PrunableWeight
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;      ///< the region
  std::int64_t tile_rows = 1, tile_columns = 1;

  std::int64_t num_tile_columns() const { return (columns + tile_columns - 1) / tile_columns; }
  std::int64_t num_tiles() const { return (rows + tile_rows - 1) / tile_rows * num_tile_columns(); }
  bool operator==(const GranulePart&) const = default;
};

/// Calls body(granule, index of the element in the matrix) for every element of a part, row by row.
template <typename Body>
void for_each_element(const GranulePart& part, const Body& body) {
  const std::int64_t across = part.num_tile_columns();
  for (std::int64_t r = 0; r < part.rows; ++r) {
    const std::int64_t line = r / part.tile_rows * across;
    const std::int64_t begin = (part.row + r) * part.matrix_columns + part.column;
    for (std::int64_t c = 0; c < part.columns; ++c)
      body(static_cast<std::size_t>(line + c / part.tile_columns),
           static_cast<std::size_t>(begin + c));
  }
}

/// What shares its granules: a weight, or all that belongs to an attention or a feed-forward part,
/// where granule 3 is the third tile of each part.
struct PruningUnit {
  std::string name;            ///< the weight's, the attention's, the first layer's
  std::vector<NodeId> layers;  ///< that read its weights
  std::vector<GranulePart> parts;
  std::int64_t granules = 0;
  /// Runs of consecutive granules that lie in one row (or row of tiles) of a weight; 1 where that
  /// says nothing.
  std::int64_t lines = 1;
  /// How many elements of a granule stay when it is pruned; 0 but for N:M.
  std::int64_t kept = 0;
  bool operator==(const PruningUnit&) const = default;
};

/// The units of a granularity. Of these weights, or, for heads and neurons, of the attentions and
/// feed-forward parts whose weights are all among them. Fails where N:M does not divide a row, and
/// where there is nothing of the kind.
std::vector<PruningUnit> make_units(const Graph& graph, const std::vector<PrunableWeight>& weights,
                                    const Granularity& granularity);

}  // namespace lathe::compress
