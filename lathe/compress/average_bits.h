#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lathe/core/graph.h"

/// What numbers take where they are stored: scales and zero points are part of it.
namespace lathe::compress {

/// The formats of a layer that has weights. Float is a format of 32 bits here.
struct LayerBits {
  std::string layer;
  std::int64_t rows = 0, columns = 0;  ///< of its weight, as formats see it
  std::int64_t width = 0;              ///< elements of a row of what it reads
  std::string weights = "float", data = "float";

  std::int64_t num_weights() const { return rows * columns; }
  /// Bits that an element takes, its share of scales included. Those that data make themselves, a
  /// row or a block at a time, are counted; one that was chosen for a whole tensor is of no weight.
  double weight_bits() const;
  double data_bits() const;
};

/// Every layer, in topological order; packed ones too.
std::vector<LayerBits> layer_bits(const Graph& graph);

/// Means over all layers: of weights by their number, of data by the elements that each layer reads
/// for one row.
struct AverageBits {
  double weights = 0, data = 0;
  double rounded_weights = 0, rounded_data = 0;  ///< shares of the elements that are not floats
};
AverageBits average_bits(std::span<const LayerBits> layers);
inline AverageBits average_bits(const Graph& graph) {
  return average_bits(layer_bits(graph));
}

}  // namespace lathe::compress
