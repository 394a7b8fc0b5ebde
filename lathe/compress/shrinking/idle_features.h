#pragma once

#include <vector>

#include "lathe/compress/shrinking/structures.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// Which features of a structure add nothing to what its readers compute: exactly nothing, so that
/// a sum without them is the same number. For each reader a feature is multiplied by weights that
/// are all masked; or it is zero, because every layer that makes it has a masked row for it, no
/// bias there, and zero stays zero on the way.
struct IdleFeatures {
  std::vector<bool> idle;  ///< by feature
  /// Layers that read a feature without a mask which others read masked.
  std::vector<bool> read_elsewhere;
  std::vector<NodeId> other_readers;
  /// Features that every maker has a masked row for, and that are something else than zero.
  std::vector<bool> constant;
};
IdleFeatures find_idle_features(const Graph& graph, const State& state, const Structure& structure);

}  // namespace lathe::compress
