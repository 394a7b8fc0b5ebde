#pragma once

#include <string>
#include <vector>

#include "lathe/compress/average_bits.h"
#include "lathe/search/candidate_space.h"

namespace lathe::search {

/// What formats cost a model, known before any of them is tried.
class PrecisionCosts {
 public:
  explicit PrecisionCosts(const Graph& graph) : layers_(compress::layer_bits(graph)) {}

  /// The bits of all layers with the candidate's formats; layers that it does not name keep theirs.
  compress::AverageBits average(const Candidate& candidate) const;
  /// The layer as the graph has it; fails on a name that is none.
  const compress::LayerBits& layer(const std::string& name) const;
  const std::vector<compress::LayerBits>& layers() const { return layers_; }

 private:
  std::vector<compress::LayerBits> layers_;
};

}  // namespace lathe::search
