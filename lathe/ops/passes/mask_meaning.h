#pragma once

#include <optional>

#include "lathe/core/graph.h"

namespace lathe::ops {

/// What an array that is added to scores, or chosen by, says of queries and keys: one number for
/// keys that are kept and another for those that are hidden. A key is kept where `keys` is not 0
/// for it and, if `is_causal`, where it is not later than the query.
struct MaskMeaning {
  Value keys = kNone;  ///< [B,Lk] whole numbers, 0 or not; none: all
  bool is_causal = false;
  double kept = 1.0;
  double hidden = 0.0;

  bool is_uniform() const { return keys.is_none() && !is_causal; }
};

/// The meaning of a value that is broadcast to scores [B,h,Lq,Lk], found by following it through
/// casts, comparisons of places, logic, choices and arithmetic with numbers; nullopt where it may
/// mean something else. An array of whole numbers that masks keys is taken to hold 0 and 1.
std::optional<MaskMeaning> meaning_of_mask(const Graph& graph, Value mask);

}  // namespace lathe::ops
